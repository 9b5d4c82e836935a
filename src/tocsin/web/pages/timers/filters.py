"""The filters of the timer list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import UNSET

from tocsin.model.timer import Status
from tocsin.web.http import wire
from tocsin.web.pages.filters import CUSTOM_RANGE, ListFilters

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US


@dataclass(frozen=True, slots=True)
class TimerFilters(ListFilters):
    """The scope is a namespace, the time range one of due times. Pending timers are listed earliest first, others latest
    first."""

    path = "/timers"
    scope_name = "namespace"
    range_name = "due"
    #: Each tab lists the timers with these statuses; none: all.
    views: ClassVar = {
        "pending": ("Pending", (Status.PENDING,)),
        "completed": ("Completed", (Status.COMPLETED,)),
        "failed": ("Failed", (Status.FAILED,)),
        "expired": ("Expired", (Status.EXPIRED,)),
        "canceled": ("Canceled", (Status.CANCELED,)),
        "all": ("All", ()),
    }
    ranges: ClassVar = {
        "": ("Any time", None, None),
        "next-5m": ("Next 5 minutes", 0, 5 * _MINUTE_US),
        "next-1h": ("Next hour", 0, _HOUR_US),
        "next-24h": ("Next 24 hours", 0, _DAY_US),
        "last-15m": ("Last 15 minutes", -15 * _MINUTE_US, 0),
        "last-1h": ("Last hour", -_HOUR_US, 0),
        "last-24h": ("Last 24 hours", -_DAY_US, 0),
        "last-7d": ("Last 7 days", -7 * _DAY_US, 0),
    }
    earliest_first = frozenset({"pending"})

    @property
    def conditions(self) -> list[str]:
        """The filters apart from namespace, status and due time, as phrases that follow “timers with”."""
        conditions = [f"an id that begins with “{self.search}”"] if self.search else []
        return [*conditions, *(f"the tag “{tag}”" for tag in self.tags)]

    def api_request(self, now_us: int) -> wire.ListTimers:
        """The equivalent API request."""
        after, before = self.bounds(now_us)
        return wire.ListTimers(
            self.scope,
            status=list(self.views[self.view][1]) or UNSET,
            tags=list(self.tags) or UNSET,
            id_prefix=self.search or UNSET,
            execute_after=after or UNSET,
            execute_before=before or UNSET,
            limit=self.rows,
            cursor=self.cursor or UNSET,
        )

    def fixed(self, now_us: int) -> TimerFilters:
        """The filters for a bulk action: pending timers only, earliest first, from the start of the list, with a relative
        time range resolved to instants."""
        after, before = self.bounds(now_us)
        span = CUSTOM_RANGE if after or before else ""
        return replace(self, view="pending", order="asc", range=span, after=after, before=before, cursor="")
