"""What may need attention in the scope of a page Now, as both its verdict and its rows take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.web.pages.overview.alarms import Alarm
from tocsin.web.pages.overview.paused import PausedDestination, PausedFlow, PausedNamespace, PausedSchedule
from tocsin.web.pages.overview.waiting import HeldSchedule, Wait


@dataclass(frozen=True, slots=True)
class Concerns:
    """What is paused, wants attention, or waits. `more_…`: there may be more of these than are known."""

    namespaces: Sequence[PausedNamespace] = ()
    destinations: Sequence[PausedDestination] = ()
    flows: Sequence[PausedFlow] = ()
    #: Those that paused themselves.
    schedules: Sequence[PausedSchedule] = ()
    more_schedules: bool = False
    #: The monitors that are late or have failed, and those of which that is not known, as no node looks at them.
    alarms: Sequence[Alarm] = ()
    unwatched: Sequence[Alarm] = ()
    more_alarms: bool = False
    #: What keeps due timers.
    waits: Sequence[Wait] = ()
    more_waits: bool = False
    #: The schedules whose occurrences are suspended.
    held: Sequence[HeldSchedule] = ()
    more_held: bool = False
    #: Whether timers or schedules may wait that were not looked at.
    unread: bool = False
