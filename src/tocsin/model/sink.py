"""Events: what became of the timers, occurrences and monitors of a namespace with a sink, as it is published. One event for
each durable end, without payloads, headers or responses."""

from __future__ import annotations

import msgspec

from tocsin.model.failure import destination_of
from tocsin.model.instants import format_instant
from tocsin.model.json_record import JsonRecord
from tocsin.model.run import MissedInstants
from tocsin.model.subjects import is_subject_url
from tocsin.model.timer import Timer

#: The type of the event that stands for events that were removed unpublished.
GAP = "gap"
#: What ends a subject: the types of events, of which each has two tokens, but for a gap.
EVENT_SUBJECTS = (
    "timer.completed", "timer.failed", "timer.expired", "timer.canceled",
    "occurrence.completed", "occurrence.failed", "occurrence.expired", "occurrence.missed",
    "schedule.completed", "schedule.canceled",
    "monitor.late", "monitor.failed", "monitor.recovered", "monitor.canceled",
    GAP,
)  # fmt: skip


class SinkEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """An event. `timestamp` is when it was written, with what it reports. Exactly one of the ids is set, but for a gap: there
    `lost` events of the namespace were removed, written from `first_at` to `last_at`. So many `instants` of a schedule were
    missed, likewise, for a `reason`. `webhook_id` is that of the attempts. Instants are RFC 3339 texts."""

    id: str
    type: str
    namespace: str
    timestamp: str
    timer_id: str = ""
    schedule_id: str = ""
    monitor_id: str = ""
    execute_at: str = ""
    executed_at: str = ""
    attempts: int = 0
    last_error: str = ""
    destination: str = ""
    webhook_id: str = ""
    tags: tuple[str, ...] = ()
    reason: str = ""
    instants: int = 0
    lost: int = 0
    first_at: str = ""
    last_at: str = ""


def end_event(event_id: str, kind: str, timer: Timer, uuid: bytes, now_us: int) -> SinkEvent:
    """The event of an end: of a timer or schedule, or of an occurrence, as `kind` has it. `timer` has the final status."""
    is_timer = timer.schedule is None
    return SinkEvent(
        id=event_id,
        type=f"{kind}.{timer.status}",
        namespace=timer.namespace,
        timestamp=format_instant(now_us),
        timer_id=timer.id if is_timer else "",
        schedule_id="" if is_timer else timer.id,
        execute_at=format_instant(timer.execute_at),
        executed_at="" if timer.executed_at is None else format_instant(timer.executed_at),
        attempts=timer.attempts,
        last_error=timer.last_error or "",
        destination=timer.url if is_subject_url(timer.url) else destination_of(timer.url),
        webhook_id=f"msg_{uuid.hex()}_{timer.firing}" if timer.attempts else "",
        tags=timer.tags,
    )


def missed_event(event_id: str, timer: Timer, missed: MissedInstants, now_us: int) -> SinkEvent:
    """The event of instants of a schedule that did not fire."""
    return SinkEvent(
        id=event_id,
        type="occurrence.missed",
        namespace=timer.namespace,
        timestamp=format_instant(now_us),
        schedule_id=timer.id,
        reason=missed.reason,
        instants=missed.instants,
        first_at=format_instant(missed.first_at),
        last_at=format_instant(missed.last_at),
        tags=timer.tags,
    )


def monitor_event(event_id: str, timer: Timer, what: str, now_us: int) -> SinkEvent:
    """The event of what happened to a monitor: late, failed, recovered, or canceled when it was deleted."""
    return SinkEvent(
        id=event_id,
        type=f"monitor.{what}",
        namespace=timer.namespace,
        timestamp=format_instant(now_us),
        monitor_id=timer.id,
        tags=timer.tags,
    )


def gap_event(place: bytes, namespace: str, lost: list[SinkEvent | None], now_us: int) -> SinkEvent:
    """The event that takes the place of these, oldest first, of which some may be gaps themselves; None: one that can't be
    read. `place` is the uuid of the last one, which may have been published under its own id."""
    known = [event for event in lost if event is not None]
    now = format_instant(now_us)
    count = sum(event.lost if event is not None and event.type == GAP else 1 for event in lost)
    return SinkEvent(
        id=f"gap_{place.hex()}_{count}",
        type=GAP,
        namespace=namespace,
        timestamp=now,
        lost=count,
        first_at=(known[0].first_at if known[0].type == GAP else known[0].timestamp) if known else now,
        last_at=(known[-1].last_at if known[-1].type == GAP else known[-1].timestamp) if known else now,
    )


_stored = JsonRecord(SinkEvent)
encode_event, decode_event = _stored.encode, _stored.decode
