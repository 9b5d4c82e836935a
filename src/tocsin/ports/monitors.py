"""What is observed of monitors."""

from __future__ import annotations

from logging import INFO, WARNING

from tocsin.ports.event import Counter
from tocsin.ports.observer import Event


class PeriodEnded(Event, frozen=True):
    """Periods of a monitor have ended durably. `outcome` is onTime, late, missed, failed or excused (a report may have been
    lost because Tocsin could not take it); `periods` without a report end together."""

    namespace: str
    monitor_id: str
    outcome: str
    periods: int
    counter = Counter(
        "tocsin_monitor_periods",
        "Periods of monitors that ended: onTime, late, missed, failed, excused.",
        ("namespace", "outcome"),
        by="periods",
    )


class MonitorChanged(Event, frozen=True):
    """A monitor was changed durably. `kind` is created, changed, paused, resumed, rotated or deleted by a client; late (again
    with each repetition) or failed, of its job; or recovered."""

    namespace: str
    monitor_id: str
    kind: str
    counter = Counter(
        "tocsin_monitors_changed",
        "Monitors durably created, changed, paused, resumed, rotated, deleted; late, failed and recovered jobs.",
        ("namespace", "kind"),
    )

    def severity(self) -> int:
        return WARNING if self.kind in ("late", "failed") else INFO
