"""The filters of the call list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tocsin.model.ids import is_uuid7
from tocsin.service_calls.api.validation import PageRequest
from tocsin.service_calls.messages import CallStatus
from tocsin.web.pages.calls.presentation import STAR
from tocsin.web.pages.context import Fields
from tocsin.web.pages.filters import ListFilters
from tocsin.web.pages.timers.filters import TimerFilters


@dataclass(frozen=True, slots=True)
class CallFilters(ListFilters):
    """The scope is a tenant, the time range one of submission times that ends now. The latest call is listed first."""

    path = "/calls"
    scope_name = "tenant"
    range_name = "submitted"
    #: Each tab lists the calls with this status; None: all.
    views: ClassVar = {
        "all": ("All", None),
        "scheduled": ("Scheduled", CallStatus.SCHEDULED),
        "running": ("Running", CallStatus.RUNNING),
        "retrying": ("Retrying", CallStatus.RETRYING),
        "succeeded": ("Succeeded", CallStatus.SUCCEEDED),
        "failed": ("Failed", CallStatus.FAILED),
    }
    ranges: ClassVar = {
        name: (title, after, None)
        for name, (title, after, _) in TimerFilters.ranges.items()
        if not name.startswith("next-")
    }

    @classmethod
    def _search(cls, query: Fields) -> str:
        return query.get("q")

    @property
    def names_id(self) -> bool:
        """Whether the search text is a call's id; any other text is a part of a name."""
        return is_uuid7(self.search.lower())

    def request(self, now_us: int) -> PageRequest:
        """The equivalent API request, unchecked."""
        status = self.views[self.view][1]
        after, before = self.bounds(now_us)
        return PageRequest(
            statuses=() if status is None else (status,),
            tags=(*self.tags, *((STAR,) if self.starred else ())),
            name=self.search or None,
            submitted_from=after or None,
            submitted_to=before or None,
            limit=str(self.rows),
            cursor=self.cursor or None,
        )
