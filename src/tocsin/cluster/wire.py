"""The messages between nodes, as msgpack. Timers and changes are encoded as JSON, like their stored records.

The numbers and tags here are the protocol: nodes of two releases run side by side during a rolling restart. So what a
release adds to the one before comes at the end of a message, with a default; a node ignores messages with an unknown tag;
and a node refuses a write that it cannot decode, and only that write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, get_args

import msgspec

from tocsin.model import errors
from tocsin.model.access import ApiKey
from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import FieldError, InvalidInput, RecordUndecodable, ShardUnavailable, TocsinError
from tocsin.model.job import RowFilter
from tocsin.model.monitor import MonitorChange, PutMonitor
from tocsin.model.schedule import Edit, Put, ScheduleChange
from tocsin.model.timer import Changes, Timer, decode_record, encode_record
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.ports.flows import FlowAnswer, FlowReport, HomePlace
from tocsin.ports.forward import FlowCounts, Located, NodeReport, Whereabouts, Write, WriteKind, Written
from tocsin.ports.store import GENERATION_BYTES


class PeerWrite(msgspec.Struct, array_like=True, gc=False):
    """One write. `epoch`: the shard's epoch as the sender knows it. `budget_us`: the time left until the write's
    deadline. `brief`: the sender keeps the timer that it sends, and needs in return only what the owner changed in it.
    `namespace_version`: the version of the namespace that the sender knows; 0: unknown. `condition`: the condition of a
    create, as JSON; empty for none. For a schedule: what is asked for, as JSON; its timer, or the changes of its timer, are
    in `body`. For a replay: the generation of the run, or nothing; the changes are in `body`. `only_if`: the rows to which a
    job's write applies, as JSON; empty for any."""

    id: int
    kind: int
    shard_id: int
    epoch: int
    uuid: bytes
    namespace: str
    budget_us: int
    body: bytes
    brief: bool = False
    namespace_version: int = 0
    condition: bytes = b""
    only_if: bytes = b""


class PeerWrites(msgspec.Struct, tag="o", array_like=True):
    """Writes with the time of sending: `elapsed_us` after the sender had received tick `tick`. Without writes it only
    shows that the sender is alive."""

    tick: int
    elapsed_us: int
    ops: list[PeerWrite]


class ReportRequest(msgspec.Struct, tag="q", array_like=True):
    """Asks for the node's report."""

    id: int


class OwnershipChanged(msgspec.Struct, tag="l", array_like=True):
    """The ownership of shards has changed; the receiver should read it again."""


class RefreshNamespaces(msgspec.Struct, tag="n", array_like=True):
    """A namespace has changed: asks the node to read all namespaces and to answer once it has."""

    id: int


class LocateTimers(msgspec.Struct, tag="c", array_like=True):
    """Asks the owner of shards where their timers are, each named by its shard and uuid."""

    id: int
    timers: Located


class ReportFlows(msgspec.Struct, tag="f", array_like=True):
    """Reports to homes of flows on the receiver."""

    id: int
    reports: list[FlowReport]


class AskFlows(msgspec.Struct, tag="g", array_like=True):
    """Asks for the node's reports to homes on the sender, which has that incarnation."""

    id: int
    incarnation: bytes
    homes: list[HomePlace]


class FlowsFreed(msgspec.Struct, tag="e", array_like=True):
    """Homes on the sender, each named by its shard, may grant more than before."""

    shard_ids: list[int]


class CountFlows(msgspec.Struct, tag="w", array_like=True):
    """Asks what the node has of the flows of a namespace."""

    id: int
    namespace: str


class AskDestinations(msgspec.Struct, tag="i", array_like=True):
    """Asks what the node knows of destinations."""

    id: int
    question: DestinationQuestion


class RelayedRequest(msgspec.Struct, tag="h", array_like=True):
    """An HTTP request that only the other node can serve. `target` is the path with its query, as sent. `key_hash`: the
    SHA-256 of the client's API key, which is not among the headers; empty without one. `client`: the client's address; the
    sender has checked the request's Host header and proxy, and the token of an `identity`."""

    id: int
    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    key_hash: str = ""
    client: str = ""
    identity: ApiKey | None = None


class Tick(msgspec.Struct, tag="t", array_like=True):
    """Shows that the node is alive. Writes are dated by the last tick that their sender received."""

    number: int


class PeerError(msgspec.Struct, array_like=True, gc=False):
    """An error, by the name of its class."""

    kind: str
    message: str
    fields: list[tuple[str, str]]


class WriteResult(msgspec.Struct, array_like=True, gc=False):
    """The result of a write: the record and the instant of the next attempt, nothing after a delete, or an error. For a
    brief write: instead of the record, the `firing` that the owner set in the timer; nothing else that is visible has
    changed. `outcome`: what a create with a condition found, if it did not write."""

    id: int
    at: int = 0
    record: bytes = b""
    failure: PeerError | None = None
    firing: str = ""
    outcome: str = ""


class WriteResults(msgspec.Struct, tag="a", array_like=True):
    """Results in any order."""

    answers: list[WriteResult]


class PeerReport(msgspec.Struct, tag="r", array_like=True):
    """The node's report."""

    id: int
    report: NodeReport


class NamespacesRefreshed(msgspec.Struct, tag="m", array_like=True):
    """The node has read the namespaces since the request."""

    id: int


class TimersLocated(msgspec.Struct, tag="d", array_like=True):
    """What the node knows of each timer; nothing if it does not own its shard."""

    id: int
    whereabouts: list[Whereabouts | None]


class RelayedResponse(msgspec.Struct, tag="k", array_like=True):
    """The response for the client. Status 0: this node does not serve the request."""

    id: int
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class FlowAnswers(msgspec.Struct, tag="u", array_like=True):
    """The answers of homes to reports, by their numbers."""

    id: int
    answers: list[FlowAnswer]


class FlowReports(msgspec.Struct, tag="v", array_like=True):
    """The reports that were asked for; none to a home that the node does not take for one."""

    id: int
    reports: list[FlowReport]


class FlowsCounted(msgspec.Struct, tag="x", array_like=True):
    """What the node has of the namespace's flows, by the match of their rule, without rules of which it has nothing."""

    id: int
    counts: dict[str, FlowCounts]


class DestinationsReported(msgspec.Struct, tag="j", array_like=True):
    """What the node knows of the destinations, without those that it does not know."""

    id: int
    reports: list[DestinationReport]


class Goodbye(msgspec.Struct, tag="b", array_like=True):
    """The node is stopping. It has not processed writes and requests with ids greater than this."""

    last_id: int


#: Requests that are answered, each by a reply with its number.
Question = (
    ReportRequest
    | RefreshNamespaces
    | LocateTimers
    | ReportFlows
    | AskFlows
    | CountFlows
    | AskDestinations
    | RelayedRequest
)
PeerRequest = PeerWrites | OwnershipChanged | FlowsFreed | Question
PeerReply = (
    Tick
    | WriteResults
    | PeerReport
    | NamespacesRefreshed
    | TimersLocated
    | FlowAnswers
    | FlowReports
    | FlowsCounted
    | DestinationsReported
    | RelayedResponse
    | Goodbye
)

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[PeerRequest] = msgspec.msgpack.Decoder(PeerRequest)
_replies: msgspec.msgpack.Decoder[PeerReply] = msgspec.msgpack.Decoder(PeerReply)
_any: msgspec.msgpack.Decoder[object] = msgspec.msgpack.Decoder()
_json = msgspec.json.Encoder()
_KINDS = {int(kind): kind for kind in WriteKind}

_M = TypeVar("_M")


class _Changes(Changes, frozen=True, forbid_unknown_fields=True, gc=False):
    """Changes of which this release knows every field: an unknown field would be acknowledged without being applied."""


_changes = msgspec.json.Decoder(_Changes)
_condition = msgspec.json.Decoder(Condition)
_change = msgspec.json.Decoder(ScheduleChange | MonitorChange)
_only_if = msgspec.json.Decoder(RowFilter)


class PeerProtocolError(Exception):
    """The peer sent something that cannot be decoded: the connection is closed."""


def encode(message: PeerRequest | PeerReply) -> bytes:
    """The encoded message."""
    return _encoder.encode(message)


def decode_request(payload: bytes) -> PeerRequest | None:
    """A message to the node that serves. None if its tag belongs to a newer release. Raises PeerProtocolError."""
    return _read(payload, _requests, _REQUEST_TAGS)


def decode_reply(payload: bytes) -> PeerReply | None:
    """A message to the node that requested. None if its tag belongs to a newer release. Raises PeerProtocolError."""
    return _read(payload, _replies, _REPLY_TAGS)


def _kinds(messages: object) -> frozenset[object]:
    return frozenset(message.__struct_config__.tag for message in get_args(messages))


_REQUEST_TAGS, _REPLY_TAGS = _kinds(PeerRequest), _kinds(PeerReply)


def _read(payload: bytes, decoder: msgspec.msgpack.Decoder[_M], kinds: frozenset[object]) -> _M | None:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if _is_of_another_kind(payload, kinds):
            return None
        raise PeerProtocolError(str(error)) from error


def _is_of_another_kind(payload: bytes, kinds: frozenset[object]) -> bool:
    try:
        message = _any.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(message, list) and bool(message) and isinstance(message[0], str) and message[0] not in kinds


def encode_write(write: Write, id: int, epoch: int, budget_us: int) -> PeerWrite:
    """The write in wire form."""
    op = PeerWrite(
        id, write.kind, write.shard_id, epoch, write.uuid, write.namespace, budget_us, b"",
        namespace_version=write.namespace_version,
    )  # fmt: skip
    if write.kind is WriteKind.CONCLUDE:
        assert write.timer is not None
        op.body = write.expected + write.execute_at.to_bytes(8, "big", signed=True) + encode_record(write.timer)
    elif write.kind is WriteKind.SCHEDULE:
        op.condition = _json.encode(write.change)
        if write.timer is not None:
            op.body = encode_record(write.timer)
        elif write.changes is not None:
            op.body = _json.encode(write.changes)
    elif write.kind is WriteKind.DELETE and write.change is not None:
        op.condition = _json.encode(write.change)
    elif write.timer is not None:
        op.body, op.brief = encode_record(write.timer), True
        if write.condition is not None:
            op.condition = _json.encode(write.condition)
    elif write.changes is not None:
        op.body, op.condition = _json.encode(write.changes), write.expected
    if write.only_if is not None:
        op.only_if = _json.encode(write.only_if)
    return op


def decode_write(op: PeerWrite, deadline_us: int) -> Write:
    """The decoded write. Raises RecordUndecodable, also for a write that only a newer release can send."""
    kind = _KINDS.get(op.kind)
    if kind is None:
        raise RecordUndecodable(f"unknown kind of write: {op.kind}")
    timer: Timer | None = None
    changes: Changes | None = None
    condition: Condition | None = None
    change: ScheduleChange | MonitorChange | None = None
    execute_at, expected, only_if = 0, b"", None
    if op.only_if:
        with _undecodable():
            only_if = _only_if.decode(op.only_if)
    if kind is WriteKind.CREATE:
        timer = decode_record(op.body)
        if op.condition:
            with _undecodable():
                condition = _condition.decode(op.condition)
    elif kind is WriteKind.UPDATE or kind is WriteKind.REPLAY:
        with _undecodable():
            changes = _changes.decode(op.body)
        expected = op.condition
    elif kind is WriteKind.SCHEDULE:
        with _undecodable():
            change = _change.decode(op.condition)
            if isinstance(change, Put | PutMonitor):
                timer = decode_record(op.body)
            elif isinstance(change, Edit):
                changes = _changes.decode(op.body)
    elif kind is WriteKind.DELETE and op.condition:
        with _undecodable():
            change = _change.decode(op.condition)
    elif kind is WriteKind.CONCLUDE:
        expected, rest = op.body[:GENERATION_BYTES], op.body[GENERATION_BYTES:]
        execute_at, timer = int.from_bytes(rest[:8], "big", signed=True), decode_record(rest[8:])
    return Write(
        kind, op.shard_id, op.uuid, op.namespace, timer, changes, deadline_us,
        op.namespace_version, execute_at, expected, condition, change, only_if,
    )  # fmt: skip


@contextmanager
def _undecodable() -> Iterator[None]:
    """Translates the errors of decoding; ValueError is the base class of msgspec's."""
    try:
        yield
    except ValueError as error:
        raise RecordUndecodable(str(error)) from error


def encode_result(id: int, result: Written | TocsinError | None, *, brief: bool = False) -> WriteResult:
    """A result in wire form."""
    if isinstance(result, Written):
        if result.outcome is not Outcome.CREATED:
            return WriteResult(id, result.next_attempt_at, encode_record(result.timer), outcome=result.outcome)
        # What a debounced create makes depends on what the owner has.
        if brief and result.timer.firing and result.timer.debounced is None:
            return WriteResult(id, result.next_attempt_at, firing=result.timer.firing)
        return WriteResult(id, result.next_attempt_at, encode_record(result.timer))
    if result is None:
        return WriteResult(id)
    fields = [(field.path, field.reason) for field in result.errors] if isinstance(result, InvalidInput) else []
    return WriteResult(id, failure=PeerError(type(result).__name__, str(result), fields))


def decode_result(answer: WriteResult, sent: Timer | None = None) -> Written | TocsinError | None:
    """The decoded result of the write that sent this timer, if any. Raises RecordUndecodable."""
    if answer.failure is not None:
        return _error_of(answer.failure)
    if answer.firing and sent is not None:
        sent.firing = answer.firing
        return Written(sent, answer.at)
    if not answer.record:
        return None
    with _undecodable():
        outcome = Outcome(answer.outcome) if answer.outcome else Outcome.CREATED
    return Written(decode_record(answer.record), answer.at, outcome)


def _error_of(failure: PeerError) -> TocsinError:
    """The error. An error that this release does not know becomes ShardUnavailable, which decides nothing."""
    kind = getattr(errors, failure.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, TocsinError)):
        return ShardUnavailable(f"{failure.kind}: {failure.message}")
    if issubclass(kind, InvalidInput):
        return kind(*(FieldError(path, reason) for path, reason in failure.fields))
    return kind(failure.message)
