"""The monitors that are late or have failed, read while an overview is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.model.monitor import MonitorStatus
from tocsin.timers.monitors import MonitorListRequest, Monitors
from tocsin.web.pages.overview.looks import KEPT_MAX, LOOK_READS_MAX, Looked

#: The states of a monitor that wants attention.
ALARMING = frozenset({MonitorStatus.LATE, MonitorStatus.FAILED})


class Alarm(NamedTuple):
    """A monitor that wants attention: whether it is late, or else its job has failed, and since when (microseconds)."""

    namespace: str
    monitor_id: str
    late: bool
    since: int


class Alarms(Looked[Alarm]):
    """The monitors that want attention."""

    def __init__(self, monitors: Monitors) -> None:
        super().__init__()
        self._monitors = monitors

    async def look(self, cursor: str | None) -> tuple[Sequence[Alarm], str | None]:
        wanted = MonitorListRequest(None, ALARMING, cursor=cursor, limit=KEPT_MAX, reads_max=LOOK_READS_MAX)
        views, after = await self._monitors.list(wanted)
        return [
            Alarm(view.timer.namespace, view.timer.id, state.status is MonitorStatus.LATE, state.since)
            for view in views
            for state in (view.monitor.state,)
        ], after
