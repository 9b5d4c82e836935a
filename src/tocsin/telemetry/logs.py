"""Structured logs: configuration, and the observer that turns engine events into lines."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import structlog

from tocsin.ports import observer as events
from tocsin.ports.observer import Event
from tocsin.rate_limit import RateLimit

#: Warnings per second about single failed timers; the next line has the number of suppressed ones.
FAILED_TIMER_LINES_PER_SECOND_MAX = 10
#: Warnings per second about timers that ended because their time was over.
EXPIRED_TIMER_LINES_PER_SECOND_MAX = 5
#: Warnings per second about requests that could not be sent.
NOT_SENT_LINES_PER_SECOND_MAX = 5
#: Warnings per second about refused connections, of nodes and of clients.
REFUSED_PEER_LINES_PER_SECOND_MAX = 5
REFUSED_CLIENT_LINES_PER_SECOND_MAX = 5
#: Errors per second about damaged records, which each reader of a list meets again.
DAMAGED_RECORD_LINES_PER_SECOND_MAX = 5

#: Failures of the store are logged once in this time for each kind: an outage fails every shard again and again. The next
#: line has the number of suppressed ones, and their shards, up to this many.
STORE_FAILURE_WINDOW_S = 10.0
SUPPRESSED_SHARDS_MAX = 32
_STORE_FAILURES = (events.BatchFailed, events.LoadFailed, events.ClaimFailed, events.HeartbeatFailed)

#: The log level of each event; `docs/reference/events.md` lists them.
LEVELS: dict[type, int] = {
    events.TimersCreated: logging.DEBUG,
    events.TimersChanged: logging.DEBUG,
    events.OccurrenceEnded: logging.DEBUG,
    events.OccurrencesMissed: logging.WARNING,
    events.ScheduleChanged: logging.DEBUG,
    events.SchedulesReplanned: logging.INFO,
    events.BatchCommitted: logging.DEBUG,
    events.PageLoaded: logging.DEBUG,
    events.ClockOffset: logging.DEBUG,
    events.HistoryPurged: logging.DEBUG,
    events.TimersResumed: logging.INFO,
    events.ShardClaimed: logging.DEBUG,
    events.ShardReleased: logging.DEBUG,
    events.DispatchResumed: logging.INFO,
    events.NodeNameShared: logging.WARNING,
    events.ClusterSecretDiffers: logging.ERROR,
    events.ClockTrusted: logging.INFO,
    events.BatchFailed: logging.ERROR,
    events.LoadFailed: logging.ERROR,
    events.NamespaceDamaged: logging.ERROR,
    events.RecordDamaged: logging.ERROR,
    events.ClaimFailed: logging.WARNING,
    events.ShardLost: logging.WARNING,
    events.DispatchPaused: logging.WARNING,
    events.ClockDistrusted: logging.WARNING,
    events.HeartbeatFailed: logging.ERROR,
    events.WriteRefused: logging.ERROR,
    events.TimerSuspended: logging.WARNING,
    events.AttemptNotSent: logging.WARNING,
    events.TimerExpired: logging.WARNING,
    events.PeerConnected: logging.INFO,
    events.PeerLost: logging.WARNING,
    events.PeerRefused: logging.WARNING,
    events.PeerCertificateLoaded: logging.INFO,
    events.PeerCertificateNotLoaded: logging.ERROR,
    events.ClientRefused: logging.WARNING,
    events.WritesSent: logging.DEBUG,
    events.WritesForwarded: logging.DEBUG,
    events.StoreRequestRepeated: logging.DEBUG,
    events.StoreUnitsConsumed: logging.DEBUG,
    events.ShardSizeEstimated: logging.DEBUG,
    events.PartitionSizeMeasured: logging.DEBUG,
}

#: DynamoDB limits a shard to 10 GiB. From here on, each new estimate is a warning.
_SHARD_WARNING_BYTES = 8 << 30
#: Cassandra has no limit, but compactions and repairs of partitions of many GiB take long. Likewise from here on.
_PARTITION_WARNING_BYTES = 1 << 30
#: Reasons for which a shard is lost without a fault.
_ORDERLY_ENDS = frozenset({"released", "stopped"})
#: Fields of the standard library's log records that are logged.
_EXTRA_FIELDS = ("method", "path", "correlation_id")


def configure_logging(level: str, form: str) -> None:
    """Sends structlog and the standard library's loggers to stderr, as JSON lines or for a console (`form` is auto,
    console or json; auto is console on a terminal)."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
    ]
    last: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(_EXTRA_FIELDS)],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    # They log each request with its content.
    for name in ("botocore", "aiobotocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers[:] = []
        logging.getLogger(name).propagate = True


class EventLog:
    """An observer that logs one line per significant event. Events of single timers are logged at DEBUG, or rate-limited."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._logger = structlog.get_logger("tocsin.engine")
        self._debug = logging.getLogger().isEnabledFor(logging.DEBUG)
        self._failed_timers = RateLimit(FAILED_TIMER_LINES_PER_SECOND_MAX, now_s=now_s)
        # Events that others can cause at any rate, or that affect all timers at once.
        self._rate_limits: dict[type, RateLimit] = {
            events.PeerRefused: RateLimit(REFUSED_PEER_LINES_PER_SECOND_MAX, now_s=now_s),
            events.TimerExpired: RateLimit(EXPIRED_TIMER_LINES_PER_SECOND_MAX, now_s=now_s),
            events.AttemptNotSent: RateLimit(NOT_SENT_LINES_PER_SECOND_MAX, now_s=now_s),
            events.RecordDamaged: RateLimit(DAMAGED_RECORD_LINES_PER_SECOND_MAX, now_s=now_s),
            events.ClientRefused: RateLimit(REFUSED_CLIENT_LINES_PER_SECOND_MAX, now_s=now_s),
        }

        # Failures of the store, by event and kind, and the shards of those that were suppressed.
        self._store_failures: defaultdict[tuple[type, str], RateLimit] = defaultdict(
            lambda: RateLimit(1, STORE_FAILURE_WINDOW_S, now_s)
        )
        self._suppressed_shards: defaultdict[tuple[type, str], set[int]] = defaultdict(set)

    def __call__(self, event: Event) -> None:
        """Logs the event."""
        if isinstance(event, events.AttemptFinished):
            self._attempt(event)
            return
        if isinstance(event, _STORE_FAILURES):
            self._store_failure(event)
            return
        level = LEVELS[type(event)]
        if isinstance(event, events.ShardLost) and event.reason in _ORDERLY_ENDS:
            level = logging.DEBUG
        if isinstance(event, events.ShardSizeEstimated) and event.size_bytes >= _SHARD_WARNING_BYTES:
            level = logging.WARNING
        if isinstance(event, events.PartitionSizeMeasured) and event.size_bytes >= _PARTITION_WARNING_BYTES:
            level = logging.WARNING
        if isinstance(event, events.TimerSuspended) and not event.reason.startswith("bad_record"):
            level = logging.DEBUG
        rate_limit = self._rate_limits.get(type(event))
        suppressed = 0 if rate_limit is None else rate_limit.grant()
        if suppressed is not None and (level > logging.DEBUG or self._debug):
            self._logger.log(
                level, event_phrase(type(event).__name__), **_fields(event), **suppressed_field(suppressed)
            )

    def _store_failure(self, event: Event) -> None:
        key = type(event), getattr(event, "kind", "")
        shard_id, shards = getattr(event, "shard_id", None), self._suppressed_shards[key]
        suppressed = self._store_failures[key].grant()
        if suppressed is None:
            if shard_id is not None and len(shards) < SUPPRESSED_SHARDS_MAX:
                shards.add(shard_id)
            return
        more = {"suppressed_shards": sorted(shards)} if shards else {}
        self._logger.log(
            LEVELS[type(event)],
            event_phrase(type(event).__name__),
            **_fields(event),
            **suppressed_field(suppressed),
            **more,
        )
        shards.clear()

    def _attempt(self, event: events.AttemptFinished) -> None:
        if event.outcome == "failed" and (suppressed := self._failed_timers.grant()) is not None:
            self._logger.warning("timer failed", **_fields(event), **suppressed_field(suppressed))
        elif self._debug:
            self._logger.debug("attempt finished", **_fields(event))


def event_phrase(name: str) -> str:
    """An event's name as words: `shard claimed` for `ShardClaimed`."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).lstrip()


def suppressed_field(suppressed: int) -> dict[str, int]:
    """The field of a log line before which others were suppressed."""
    return {"suppressed": suppressed} if suppressed else {}


def _fields(event: Event) -> dict[str, Any]:
    return {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in event._asdict().items()
        if value is not None
    }
