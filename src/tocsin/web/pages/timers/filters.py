"""The filters of the timer list: parsed from the URL's query, and written back into links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import urlencode

from msgspec import UNSET

from tocsin.model.instants import parse_instant
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.timer import Status
from tocsin.web.http import wire
from tocsin.web.http.instants import format_instant
from tocsin.web.pages.context import Fields, whole_number
from tocsin.web.pages.limits import UiLimits

#: More tags than a timer or call can have, so that too many are refused; few enough to list them in the error.
_TAGS_READ_MAX = 64
_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US

#: Tabs of the list: name in the URL, title, statuses (none: all).
VIEWS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "pending": ("Pending", (Status.PENDING,)),
    "completed": ("Completed", (Status.COMPLETED,)),
    "failed": ("Failed", (Status.FAILED,)),
    "canceled": ("Canceled", (Status.CANCELED,)),
    "all": ("All", ()),
}

#: Ranges relative to now: name in the URL, title, from and to.
RANGES: dict[str, tuple[str, int | None, int | None]] = {
    "": ("Any time", None, None),
    "next-5m": ("Next 5 minutes", 0, 5 * _MINUTE_US),
    "next-1h": ("Next hour", 0, _HOUR_US),
    "next-24h": ("Next 24 hours", 0, _DAY_US),
    "last-15m": ("Last 15 minutes", -15 * _MINUTE_US, 0),
    "last-1h": ("Last hour", -_HOUR_US, 0),
    "last-24h": ("Last 24 hours", -_DAY_US, 0),
    "last-7d": ("Last 7 days", -7 * _DAY_US, 0),
}
CUSTOM_RANGE = "custom"
#: Characters of an instant up to its seconds.
_FIELD_CHARS = len("2026-11-22T06:07:40")


@dataclass(frozen=True, slots=True)
class Filters:
    """The parsed query of a list. Values are unchecked text; `api_request` turns them into a request."""

    namespace: str
    view: str
    prefix: str
    tags: tuple[str, ...]
    range: str
    after: str
    before: str
    order: str
    rows: int
    cursor: str

    @classmethod
    def read(cls, query: Fields, limits: UiLimits, namespace: str = DEFAULT_NAMESPACE) -> Filters:
        """Parses a query. Unknown values are ignored, not refused, so that old links still open."""
        view = query.get("view")
        span = query.get("due")
        rows = query.get("rows")
        after, before = query.get("from"), query.get("to")
        if after or before:
            span = CUSTOM_RANGE
        view = view if view in VIEWS else "pending"
        return cls(
            namespace=query.exact("namespace") or namespace,
            view=view,
            prefix=query.exact("q"),
            tags=wanted_tags(query),
            range=span if span in RANGES or span == CUSTOM_RANGE else "",
            after=after,
            before=before,
            order=query.get("order") if query.get("order") in ("asc", "desc") else default_order(view),
            rows=min(whole_number(rows), limits.list_rows_max) or limits.list_rows,
            cursor=query.get("cursor"),
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the namespace and the tab limits the list."""
        return bool(self.prefix or self.tags or self.range)

    @property
    def conditions(self) -> list[str]:
        """The filters apart from namespace, status and due time, as phrases that follow “timers with”."""
        conditions = [f"an id that begins with “{self.prefix}”"] if self.prefix else []
        conditions += [f"the tag “{tag}”" for tag in self.tags]
        return conditions

    def api_request(self, now_us: int) -> wire.ListTimers:
        """The equivalent API request."""
        after, before = self._bounds(now_us)
        statuses = VIEWS[self.view][1]
        return wire.ListTimers(
            self.namespace,
            status=list(statuses) if statuses else UNSET,
            tags=list(self.tags) if self.tags else UNSET,
            id_prefix=self.prefix or UNSET,
            execute_after=after or UNSET,
            execute_before=before or UNSET,
            limit=self.rows,
            cursor=self.cursor or UNSET,
        )

    def _bounds(self, now_us: int) -> tuple[str, str]:
        if self.range == CUSTOM_RANGE:
            return instant_text(self.after), instant_text(self.before)
        _, after, before = RANGES[self.range]
        return (
            "" if after is None else format_instant(now_us + after),
            "" if before is None else format_instant(now_us + before),
        )

    def fixed(self, now_us: int) -> Filters:
        """The filters for a bulk action: pending timers only, earliest first, from the start of the list, with a relative
        time range resolved to instants."""
        after, before = self._bounds(now_us)
        span = CUSTOM_RANGE if after or before else ""
        return replace(self, view="pending", order="asc", range=span, after=after, before=before, cursor="")

    def link(self, path: str = "/timers", **changes: object) -> str:
        """The URL of this list with some filters changed. Unless `cursor` is given, it starts at the first page."""
        wanted = replace(self, **{"cursor": "", **changes})  # type: ignore[arg-type]
        pairs: list[tuple[str, str]] = [("namespace", wanted.namespace), ("view", wanted.view)]
        pairs += [("q", wanted.prefix)] if wanted.prefix else []
        pairs += [("tag", tag) for tag in wanted.tags]
        if wanted.range == CUSTOM_RANGE:
            pairs += [(name, text) for name, text in (("from", wanted.after), ("to", wanted.before)) if text]
        elif wanted.range:
            pairs.append(("due", wanted.range))
        if wanted.order != default_order(wanted.view):
            pairs.append(("order", wanted.order))
        pairs += [("rows", str(wanted.rows))] if wanted.rows != UiLimits().list_rows else []
        pairs += [("cursor", wanted.cursor)] if wanted.cursor else []
        return f"{path}?{urlencode(pairs)}"

    def tab(self, view: str) -> str:
        """The URL of another tab, in that tab's default order."""
        return self.link(view=view, order=default_order(view))


def default_order(view: str) -> str:
    """Pending timers are listed earliest first, all others latest first."""
    return "asc" if view == "pending" else "desc"


def wanted_tags(query: Fields) -> tuple[str, ...]:
    """The distinct tags of a query, up to the limit of tags that are read."""
    distinct = dict.fromkeys(tag for text in query.all("tag") for tag in split_tags(text))
    return tuple(islice(distinct, _TAGS_READ_MAX))


def split_tags(text: str) -> list[str]:
    """The tags in a comma-separated field."""
    return [tag for part in text.split(",") if (tag := part.strip())]


def utc_field(text: str) -> str:
    """An instant of a query in the format of a browser's date and time field, in UTC; empty if it is not an instant."""
    try:
        return format_instant(parse_instant(instant_text(text)))[:_FIELD_CHARS] if text else ""
    except ValueError:
        return ""


def instant_text(text: str) -> str:
    """A browser's date and time as an instant in UTC; any other text unchanged, for the API to check."""
    if text and not text.endswith(("Z", "z")) and "+" not in text and text.count("-") < 3:
        text = text.replace(" ", "T", 1) + ("Z" if text.count(":") >= 2 else ":00Z")
    try:
        return format_instant(parse_instant(text)) if text else ""
    except ValueError:
        return text
