"""What a list of timers is asked for: read from the query of its URL, and written back into links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import urlencode

from msgspec import UNSET

from tocsin.http import wire
from tocsin.http.instants import format_instant
from tocsin.model.instants import parse_instant
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.timer import Status
from tocsin.ui.limits import UiLimits
from tocsin.ui.visit import Fields, whole

#: More than a timer or a call can have, so that too many are refused, and few enough to be shown with the refusal.
_TAGS_READ_MAX = 64
_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US

#: Tabs of the list: name in the URL, title, statuses (none: all).
VIEWS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "upcoming": ("Upcoming", (Status.PENDING,)),
    "done": ("Done", (Status.COMPLETED,)),
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
#: Of an instant, up to its seconds.
_FIELD_CHARS = len("2026-11-22T06:07:40")


@dataclass(frozen=True, slots=True)
class Filters:
    """A list's URL, read. Texts are as people gave them; `request` makes a checked wish of them."""

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
        """From a query; what isn't known there is left out rather than refused, so that old links still open."""
        view = query.get("view")
        span = query.get("due")
        rows = query.get("rows")
        after, before = query.get("from"), query.get("to")
        if after or before:
            span = CUSTOM_RANGE
        view = view if view in VIEWS else "upcoming"
        return cls(
            namespace=query.exact("namespace") or namespace,
            view=view,
            prefix=query.exact("q"),
            tags=wanted_tags(query),
            range=span if span in RANGES or span == CUSTOM_RANGE else "",
            after=after,
            before=before,
            order=query.get("order") if query.get("order") in ("asc", "desc") else default_order(view),
            rows=min(whole(rows), limits.list_rows_max) or limits.list_rows,
            cursor=query.get("cursor"),
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the namespace and the tab limits the list."""
        return bool(self.prefix or self.tags or self.range)

    @property
    def conditions(self) -> list[str]:
        """What is asked of a timer beside its namespace, its state and when it is due, in words."""
        said = [f"its id begins with “{self.prefix}”"] if self.prefix else []
        said += [f"it has the tag “{tag}”" for tag in self.tags]
        return said

    def wish(self, now_us: int) -> wire.ListTimers:
        """The same as a client of the API would ask for it."""
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
        """The same for a while: a range that is relative to now with the instants that it has now, from the first row on,
        earliest first, and what is pending only."""
        after, before = self._bounds(now_us)
        span = CUSTOM_RANGE if after or before else ""
        return replace(self, view="upcoming", order="asc", range=span, after=after, before=before, cursor="")

    def link(self, path: str = "/timers", **changes: object) -> str:
        """The URL of this list with some things changed; a change of anything but the cursor begins at the first page."""
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
        """The URL of another tab, in that tab's usual order."""
        return self.link(view=view, order=default_order(view))


def default_order(view: str) -> str:
    """What comes next is what people look for among the upcoming, what came last among the others."""
    return "asc" if view == "upcoming" else "desc"


def wanted_tags(query: Fields) -> tuple[str, ...]:
    """The distinct tags of a query, as many as are read: each is shown, with a link that has all others."""
    distinct = dict.fromkeys(tag for text in query.all("tag") for tag in words(text))
    return tuple(islice(distinct, _TAGS_READ_MAX))


def words(text: str) -> list[str]:
    """Tags as typed into one field, with commas between them."""
    return [word for part in text.split(",") if (word := part.strip())]


def utc_field(text: str) -> str:
    """An instant of a query as a browser's field for date and time takes it, in UTC; empty for what isn't one."""
    try:
        return format_instant(parse_instant(instant_text(text)))[:_FIELD_CHARS] if text else ""
    except ValueError:
        return ""


def instant_text(text: str) -> str:
    """A browser's date and time is UTC here, and says so; everything else is left to the API's own rules."""
    if text and not text.endswith(("Z", "z")) and "+" not in text and text.count("-") < 3:
        text = text.replace(" ", "T", 1) + ("Z" if text.count(":") >= 2 else ":00Z")
    try:
        return format_instant(parse_instant(text)) if text else ""
    except ValueError:
        return text
