"""What is observed of sinks."""

from __future__ import annotations

from logging import WARNING

from tocsin.ports.event import Counter, LineLimit
from tocsin.ports.observer import Event


class EventPublished(Event, frozen=True):
    """A sink has taken an event of its namespace."""

    namespace: str
    type: str
    counter = Counter("tocsin_sink_published", "Events that sinks have taken.", ("namespace",))


class EventNotTaken(Event, frozen=True):
    """A sink has not taken an event, which is published again after a pause. `code` is that of a failed attempt, such as
    CONNECTION_FAILED, TIMEOUT, NO_STREAM or EGRESS_REFUSED; `detail` has the reason."""

    namespace: str
    code: str
    detail: str
    counter = Counter("tocsin_sink_refusals", "Events that sinks have not taken, by code.", ("namespace", "code"))
    level = WARNING
    line_limit = LineLimit(1, 60.0, each="namespace")


class EventsLost(Event, frozen=True):
    """Events were removed that no sink has taken. `reason` is backlog (there were more than `sink_backlog_max`; a gap event
    states it), damaged (the same), or no_sink (the namespace has none any more, or was deleted)."""

    namespace: str
    events: int
    reason: str
    counter = Counter(
        "tocsin_sink_lost",
        "Events that were removed unpublished: backlog, damaged, no_sink.",
        ("reason",),
        by="events",
        from_zero=("backlog", "damaged", "no_sink"),
    )
    level = WARNING
    line_limit = LineLimit(1, 10.0, each="reason")
