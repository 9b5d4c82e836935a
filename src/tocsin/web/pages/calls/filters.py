"""The filters of the call list: parsed from the URL's query, and written back into links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from tocsin.model.uuid7 import is_uuid7
from tocsin.service_calls.api.validation import PageRequest
from tocsin.service_calls.messages import CallStatus
from tocsin.web.http.instants import format_instant
from tocsin.web.pages.calls.presentation import STAR
from tocsin.web.pages.context import Fields, whole_number
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.timers.filters import CUSTOM_RANGE, RANGES, instant_text, wanted_tags

#: Tabs of the list: name in the URL, title, status (none: all).
VIEWS: dict[str, tuple[str, CallStatus | None]] = {
    "all": ("All", None),
    "scheduled": ("Scheduled", CallStatus.SCHEDULED),
    "running": ("Running", CallStatus.RUNNING),
    "retrying": ("Retrying", CallStatus.RETRYING),
    "succeeded": ("Succeeded", CallStatus.SUCCEEDED),
    "failed": ("Failed", CallStatus.FAILED),
}
#: Time ranges that end now, for the time of submission.
PAST = {name: span for name, span in RANGES.items() if not name or name.startswith("last-")}


@dataclass(frozen=True, slots=True)
class CallFilters:
    """The parsed query of a list. Values are unchecked text; `request` turns them into a request, still unchecked."""

    tenant: str
    view: str
    search: str
    tags: tuple[str, ...]
    starred: bool
    range: str
    after: str
    before: str
    rows: int
    cursor: str

    @classmethod
    def read(cls, query: Fields, limits: UiLimits, tenant: str) -> CallFilters:
        """Parses a query. Unknown values are ignored, not refused, so that old links still open."""
        view, span, rows = query.get("view"), query.get("submitted"), query.get("rows")
        after, before = query.get("from"), query.get("to")
        if after or before:
            span = CUSTOM_RANGE
        return cls(
            tenant=tenant,
            view=view if view in VIEWS else "all",
            search=query.get("q"),
            tags=wanted_tags(query),
            starred=query.get("starred") == "yes",
            range=span if span in PAST or span == CUSTOM_RANGE else "",
            after=after,
            before=before,
            rows=min(whole_number(rows), limits.list_rows_max) or limits.list_rows,
            cursor=query.get("cursor"),
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the tenant and the tab limits the list."""
        return bool(self.tags or self.range or self.starred or self.search)

    @property
    def names_id(self) -> bool:
        """Whether the search text is a call's id; any other text is a part of a name."""
        return is_uuid7(self.search.lower())

    def request(self, now_us: int) -> PageRequest:
        """The equivalent API request."""
        status = VIEWS[self.view][1]
        after, before = self._bounds(now_us)
        return PageRequest(
            statuses=() if status is None else (status,),
            tags=(*self.tags, *((STAR,) if self.starred else ())),
            name=self.search or None,
            submitted_from=after or None,
            submitted_to=before or None,
            limit=str(self.rows),
            cursor=self.cursor or None,
        )

    def _bounds(self, now_us: int) -> tuple[str, str]:
        if self.range == CUSTOM_RANGE:
            return instant_text(self.after), instant_text(self.before)
        after = PAST[self.range][1]
        return ("" if after is None else format_instant(now_us + after), "")

    def link(self, **changes: object) -> str:
        """The URL of this list with some filters changed. Unless `cursor` is given, it starts at the first page."""
        wanted = replace(self, **{"cursor": "", **changes})  # type: ignore[arg-type]
        pairs: list[tuple[str, str]] = [("tenant", wanted.tenant), ("view", wanted.view)]
        pairs += [("q", wanted.search)] if wanted.search else []
        pairs += [("tag", tag) for tag in wanted.tags]
        pairs += [("starred", "yes")] if wanted.starred else []
        if wanted.range == CUSTOM_RANGE:
            pairs += [(name, text) for name, text in (("from", wanted.after), ("to", wanted.before)) if text]
        elif wanted.range:
            pairs.append(("submitted", wanted.range))
        pairs += [("rows", str(wanted.rows))] if wanted.rows != UiLimits().list_rows else []
        pairs += [("cursor", wanted.cursor)] if wanted.cursor else []
        return f"/calls?{urlencode(pairs)}"
