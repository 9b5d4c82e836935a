"""The export of the audit trail, and of changes of timers, schedules and service calls: JSON lines to a file or to standard
output, and logs for OpenTelemetry.

Each destination has a queue in memory and a thread that empties it. Whoever reports something appends to the queue, and never
waits: while a destination is slow or away the queue fills up, and what it has no room for is dropped and counted. As soon as
there is room again, the first line states how many are missing before it. What a destination has not taken is sent again, so
that it may get a record twice. A batch that it refuses is halved, down to the record that it doesn't take.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog
from msgspec import UNSET, UnsetType

from tocsin import __version__
from tocsin.model.audit import AuditEntry, Detail
from tocsin.model.errors import ConfigError
from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.setting import setting
from tocsin.model.setting_values import api_url
from tocsin.ports.audit import Actor

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk._logs import ReadableLogRecord

_log = structlog.get_logger("tocsin.audit")

#: Stands for standard output.
STDOUT = "-"
#: Records that wait for a destination, and ids in them, which bound their memory; those beyond are dropped.
_WAITING_MAX, _WAITING_IDS_MAX = 10_000, 100_000
#: Ids in a record. More of one operation are several records.
_IDS_MAX = 100
#: How often a thread looks for records. It is not woken for each: that would cost the event loop more than the record.
_INTERVAL_S = 0.1
#: Records that a destination gets at once, and ids in them, which bound the request's bytes.
_BATCH_MAX, _BATCH_IDS_MAX = 512, 5_000
#: How often a record is sent that the destination refuses alone; then it is dropped.
_REFUSALS_MAX = 3
#: A collector's answers that speak of the request. After others, the same one may be taken later.
_REFUSALS = frozenset({400, 413, 422})
#: The pauses after failures: the first one, and the longest.
_PAUSE_S, _PAUSE_S_MAX = 0.5, 15.0
#: Seconds for a request to a collector, its repetitions included.
_REQUEST_TIMEOUT_S = 5.0
#: How long the end of a node waits for what the destinations have not taken.
_CLOSE_TIMEOUT_S = 5.0
#: The kind of a record that states how many are missing.
_DROPPED = "dropped"
#: The mode of a new file, as far as the process permits; an existing one keeps its own.
_FILE_MODE = 0o640


@dataclass(frozen=True, slots=True)
class AuditExportOptions:
    """Where the audit trail goes besides the store, and what goes with it."""

    file: str | None = setting(
        None,
        "File to which a copy of the audit trail is appended as JSON lines, with changes of timers, schedules and service "
        "calls; `-` is standard output, of a server with one worker. It may be moved away at any time: the next line makes "
        "another. Unset: no lines.",
    )
    endpoint: str | None = setting(
        None,
        "URL of a collector for OTLP over HTTP that gets the same as logs, such as `http://127.0.0.1:4318`; they go to its "
        "`/v1/logs`. Requires the extra `tocsin[otel]`. Unset: no logs.",
        rule=api_url,
    )
    changes: bool = setting(
        True,
        "Whether the export has changes of timers, schedules and service calls, too. They are many, and each costs "
        "processor time; without them the export has the audit trail alone.",
    )


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line as it is encoded. `kind` is `audit`, an entry of the trail, `change`, or `dropped`, which states how many
    `records` are missing before it. `key_id` is None for somebody without a key; `name` is the key's, or whom the identity
    provider knows; `scope` a namespace or tenant."""

    at: str
    kind: str
    node: str
    action: str = ""
    key_id: str | UnsetType | None = UNSET
    name: str = ""
    source: str = ""
    address: str = ""
    subject: str = ""
    scope: str = ""
    ids: Sequence[str] = ()
    details: dict[str, Detail] = {}
    entry_id: str = ""
    records: int = 0


class Refused(OSError):
    """A destination has answered that it takes these records neither now nor later; fewer of them it may take."""


class Sink(Protocol):
    """A destination. Its methods are called by its thread alone."""

    #: What the log and the metric call it.
    name: str

    def send(self, records: Sequence[Record]) -> None:
        """Returns once they are with the destination. Raises OSError; then the same ones are sent again, after
        Refused fewer of them."""

    def close(self) -> None:
        """Nothing follows."""


class _Queue:
    """The records for one destination, and the thread that sends them. `dropped` is called for each record that is, by the
    thread that queues."""

    def __init__(self, sink: Sink, node: str, dropped: Callable[[str], object]) -> None:
        self._sink = sink
        self._node = node
        self._count = dropped
        self._waiting: deque[Record] = deque()
        self._dropped = 0
        # Ids that were queued, and those that have left: each is counted by one thread, so that no lock is needed.
        self._ids_in = self._ids_out = 0
        self._batch: list[Record] = []
        self._batch_max = _BATCH_MAX
        self._refusals = 0
        # Records that were dropped because they were refused, and those of them that are counted.
        self._refused = self._refused_counted = 0
        self._ending = threading.Event()
        # Of the process's end it is no business whether a destination answers.
        self._thread = threading.Thread(target=self._run, name=f"audit-export-{sink.name}", daemon=True)
        self._thread.start()

    def put(self, record: Record) -> None:
        """Queues a record, or drops it. Called by one thread, that of the event loop."""
        if not self._has_room():
            if not self._dropped:
                _log.warning("audit export dropping records", sink=self._sink.name, waiting=len(self._waiting))
            self._dropped += 1
            self._count(self._sink.name)
            return
        if self._dropped:
            self.announce()
        self._ids_in += len(record.ids)
        self._waiting.append(record)

    def announce(self) -> None:
        """Queues how many records were dropped, if any were and there is room; counts those that were refused."""
        while self._refused_counted < self._refused:
            self._refused_counted += 1
            self._count(self._sink.name)
        if self._dropped and self._has_room():
            missing, self._dropped = self._dropped, 0
            self._waiting.append(self._missing(missing))

    def close(self) -> None:
        """Sends what is left, for some seconds at most."""
        self.announce()
        self._ending.set()
        self._thread.join(_CLOSE_TIMEOUT_S)
        if self._waiting:
            _log.error("audit export ended with records left", sink=self._sink.name, records=len(self._waiting))

    def _run(self) -> None:
        pause_s = 0.0
        while not (ending := self._ending.wait(pause_s or _INTERVAL_S)) or self._waiting:
            try:
                self._send()
            except Exception as error:  # noqa: BLE001 -- a thread has nobody to raise to
                if not pause_s:
                    _log.warning("audit export interrupted", sink=self._sink.name, error=str(error) or repr(error))
                pause_s = min(2 * pause_s or _PAUSE_S, _PAUSE_S_MAX)
                if ending:
                    break
            else:
                if pause_s:
                    _log.info("audit export resumed", sink=self._sink.name)
                pause_s = 0.0
        self._sink.close()

    def _send(self) -> None:
        while self._waiting:
            if not self._batch:
                self._batch = self._next()
            try:
                self._sink.send(self._batch)
            except Refused:
                if not self._went_on():
                    raise
                continue
            for record in self._batch:
                self._waiting.popleft()
                self._ids_out += len(record.ids)
            self._batch, self._refusals = [], 0
            self._batch_max = min(2 * self._batch_max, _BATCH_MAX)

    def _next(self) -> list[Record]:
        """The first records. They stay in the queue, from which nobody else removes any, until they are sent."""
        batch, ids = [self._waiting[0]], len(self._waiting[0].ids)
        for place in range(1, min(len(self._waiting), self._batch_max)):
            record = self._waiting[place]
            ids += len(record.ids)
            if ids > _BATCH_IDS_MAX:
                break
            batch.append(record)
        return batch

    def _went_on(self) -> bool:
        """After a refusal: halves the batch, or replaces a single record that was refused repeatedly by its announcement.
        False if the same is to be sent once more. An announcement always is: so a destination that refuses whatever it gets
        costs one record."""
        if len(self._batch) > 1:
            self._batch_max = len(self._batch) // 2
            self._batch = self._batch[: self._batch_max]
            return True
        (record,) = self._batch
        self._refusals += 1
        if self._refusals < _REFUSALS_MAX or record.kind == _DROPPED:
            return False
        _log.warning("audit export dropping a record that is refused", sink=self._sink.name, action=record.action)
        self._refused += 1
        self._waiting[0] = self._missing(1)
        self._ids_out += len(record.ids)
        self._batch, self._refusals = [], 0
        return True

    def _has_room(self) -> bool:
        return len(self._waiting) < _WAITING_MAX and self._ids_in - self._ids_out < _WAITING_IDS_MAX

    def _missing(self, records: int) -> Record:
        return Record(format_instant(time.time_ns() // 1_000), _DROPPED, self._node, records=records)


class Exports:
    """Implements the port AuditExport for all destinations of a node."""

    def __init__(self, sinks: Sequence[Sink], node: str, dropped: Callable[[str], object]) -> None:
        self._node = node
        self._queues = [_Queue(sink, node, dropped) for sink in sinks]

    def entry(self, entry: AuditEntry, name: str) -> None:
        """Queues an entry of the trail."""
        self._put(
            Record(
                format_instant(entry.at),
                "audit",
                entry.node,
                action=entry.action,
                key_id=entry.key_id,
                name=name,
                source=entry.source,
                address=entry.address,
                subject=entry.subject,
                details=entry.details,
                entry_id=entry.entry_id.hex(),
            )
        )

    def changed(self, operation: str, actor: Actor, scope: str, ids: Sequence[str]) -> None:
        """Queues changes."""
        at = format_instant(time.time_ns() // 1_000)
        for begin in range(0, len(ids), _IDS_MAX):
            self._put(
                Record(
                    at,
                    "change",
                    self._node,
                    action=operation,
                    key_id=actor.key_id,
                    name=actor.name,
                    source=actor.source.value,
                    address=actor.address,
                    scope=scope,
                    ids=ids[begin : begin + _IDS_MAX],
                )
            )

    def announce(self) -> None:
        """To be called now and then: reports dropped records even if no others follow."""
        for queue in self._queues:
            queue.announce()

    def close(self) -> None:
        """Sends what is left, for some seconds at most."""
        for queue in self._queues:
            queue.close()

    def _put(self, record: Record) -> None:
        for queue in self._queues:
            queue.put(record)


def open_exports(options: AuditExportOptions, node: str, dropped: Callable[[str], object]) -> Exports | None:
    """The export to what the options name; None if that is nothing. Raises ConfigError if the file can't be opened."""
    sinks: list[Sink] = []
    if options.file is not None:
        sinks.append(_Lines(options.file))
    if options.endpoint is not None:
        sinks.append(_Logs(options.endpoint, node))
    return Exports(sinks, node, dropped) if sinks else None


class _Lines:
    """JSON lines, in a file or on standard output."""

    def __init__(self, path: str) -> None:
        self.name = "stdout" if path == STDOUT else "file"
        self._path = path
        self._encode = msgspec.json.Encoder().encode
        self._file = sys.stdout.fileno() if path == STDOUT else -1
        # What is left of lines that were written in part: without it, the next one would begin within a line.
        self._left = b""
        if path != STDOUT:
            try:
                self._open()
            except OSError as error:
                raise ConfigError(f"audit_export.file: {path} can't be written: {error.strerror}") from None

    def send(self, records: Sequence[Record]) -> None:
        """Appends lines, with as few writes as possible: processes that share the file don't divide one another's."""
        if self._path != STDOUT and self._moved():
            self._left = b""
            self._open()
        if not self._left:
            self._left = b"".join([self._encode(record) + b"\n" for record in records])
        while self._left:
            self._left = self._left[os.write(self._file, self._left) :]

    def close(self) -> None:
        """Closes the file."""
        if self._path != STDOUT:
            os.close(self._file)

    def _open(self) -> None:
        opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        if self._file >= 0:
            os.close(self._file)
        self._file = opened

    def _moved(self) -> bool:
        """Whether another file, or none, has the path by now: a program that rotates logs has moved this one."""
        mine = os.fstat(self._file)
        try:
            there = Path(self._path).stat()
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)


class _Logs:
    """Logs of OpenTelemetry, to a collector."""

    name = "otlp"

    def __init__(self, endpoint: str, node: str) -> None:
        # An extra, and slow to import.
        import requests
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs.export import LogRecordExportResult
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._succeeded = LogRecordExportResult.SUCCESS
        # The exporter states only whether it succeeded. Its session knows the answer, too; 0: there was none.
        self._status = 0
        session = requests.Session()
        session.hooks["response"].append(self._answered)
        self._exporter = OTLPLogExporter(endpoint=f"{endpoint}/v1/logs", timeout=_REQUEST_TIMEOUT_S, session=session)
        named = {"service.name": "tocsin", "service.version": __version__, "service.instance.id": node}
        self._resource = Resource.create(named)
        self._scope = InstrumentationScope("tocsin.audit", __version__)

    def send(self, records: Sequence[Record]) -> None:
        """Sends them as one request."""
        self._status = 0
        if self._exporter.export([self._of(record) for record in records]) is not self._succeeded:
            error = Refused if self._status in _REFUSALS else OSError
            answer = f": it answered {self._status}" if self._status else ""
            raise error(f"the collector has not accepted the logs{answer}")

    def close(self) -> None:
        """Ends the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _answered(self, response: requests.Response, **_: object) -> None:
        self._status = response.status_code

    def _of(self, record: Record) -> ReadableLogRecord:
        from opentelemetry._logs import LogRecord, SeverityNumber
        from opentelemetry.sdk._logs import ReadableLogRecord

        shown: dict[str, Any] = msgspec.to_builtins(record)
        at, details = shown.pop("at"), shown.pop("details", {})
        attributes = {f"tocsin.audit.{name}": value for name, value in shown.items()}
        attributes |= {f"tocsin.audit.details.{name}": value for name, value in details.items()}
        severity = SeverityNumber.WARN if record.kind == _DROPPED else SeverityNumber.INFO
        made = LogRecord(
            timestamp=parse_instant(at) * 1_000,
            severity_text=severity.name,
            severity_number=severity,
            body=f"{record.kind} {record.action}".strip(),
            attributes={name: value for name, value in attributes.items() if value is not None},
            event_name=f"tocsin.audit.{record.kind}",
        )
        return ReadableLogRecord(made, self._resource, self._scope)
