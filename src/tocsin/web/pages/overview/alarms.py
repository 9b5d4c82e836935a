"""The monitors that are late, have failed, or are not watched, read while an overview is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.model.monitor import MonitorStatus
from tocsin.ports.clock import Clock
from tocsin.timers.monitors import MonitorListRequest, Monitors, MonitorView
from tocsin.web.pages.overview.looks import KEPT_MAX, LOOK_READS_MAX, Looked

#: The states of a monitor that wants attention.
ALARMING = frozenset({MonitorStatus.LATE, MonitorStatus.FAILED})


class Alarm(NamedTuple):
    """A monitor that wants attention: whether it is late, or else its job has failed, and since when (microseconds).
    `unwatched`: neither is known, as no node has looked at it since."""

    namespace: str
    monitor_id: str
    late: bool
    since: int
    unwatched: bool = False


class Alarms(Looked[Alarm]):
    """The monitors that want attention."""

    def __init__(self, monitors: Monitors, clock: Clock) -> None:
        super().__init__()
        self._monitors = monitors
        self._clock = clock

    async def look(self, cursor: str | None) -> tuple[Sequence[Alarm], str | None]:
        wanted = MonitorListRequest(None, cursor=cursor, limit=KEPT_MAX, reads_max=LOOK_READS_MAX)
        views, after = await self._monitors.list(wanted)
        now_us = self._clock.now_us()
        return [found for view in views if (found := _alarm(view, now_us)) is not None], after


def _alarm(view: MonitorView, now_us: int) -> Alarm | None:
    state, names = view.monitor.state, (view.timer.namespace, view.timer.id)
    if state.status in ALARMING:
        return Alarm(*names, state.status is MonitorStatus.LATE, state.since)
    since = view.unwatched_since(now_us)
    return None if since is None else Alarm(*names, False, since, unwatched=True)
