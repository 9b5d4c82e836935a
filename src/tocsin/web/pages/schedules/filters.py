"""The filters of the list of schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tocsin.model.schedule import ScheduleStatus
from tocsin.web.pages.filters import ListFilters


@dataclass(frozen=True, slots=True)
class ScheduleFilters(ListFilters):
    """The scope is a namespace. Live schedules are listed in the order of ids, by status, and by a prefix of the id if there
    is one."""

    path = "/schedules"
    scope_name = "namespace"
    range_name = "due"
    #: Each tab lists the schedules with these statuses; none: all live ones.
    views: ClassVar = {
        "all": ("All", ()),
        "active": ("Active", (ScheduleStatus.ACTIVE,)),
        "paused": ("Paused", (ScheduleStatus.PAUSED,)),
    }
    ranges: ClassVar = {"": ("Any time", None, None)}

    @classmethod
    def _order(cls, view: str) -> str:
        return "asc"
