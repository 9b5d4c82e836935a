"""The filters of a list: parsed from the URL's query, and written back into links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from tocsin.model.access import EVERY
from tocsin.model.instants import format_instant, parse_instant
from tocsin.web.pages.context import Fields, whole_number
from tocsin.web.pages.limits import UiLimits

#: More tags than a timer or call can have, so that too many are refused; few enough to list them in the error.
_TAGS_READ_MAX = 64
CUSTOM_RANGE = "custom"
#: Characters of an instant up to its seconds.
_FIELD_CHARS = len("2026-11-22T06:07:40")

#: Errors that the search field completes.
_COMMON_ERRORS = ("timeout", "connection", "HTTP 404", "HTTP 500", "HTTP 503")
#: What a word of the search field may have as its value: one of these errors, some of which have a space, or what has none.
_VALUE = rf"(?:{'|'.join(map(re.escape, _COMMON_ERRORS))}|\S+)(?!\S)"

#: A tab of a list: its title, and what it lists. A range relative to now: its title, from and to in microseconds.
Tab = tuple[str, Any]
Range = tuple[str, int | None, int | None]


@dataclass(frozen=True, slots=True)
class ListFilters:
    """The parsed query of a list. Values are unchecked text. `scope` is the namespace or the tenant, or EVERY; `order` is
    `asc` for the earliest first, or by id, `next` for next instants first."""

    scope: str
    view: str
    search: str
    tags: tuple[str, ...]
    destination: str
    error: str
    starred: bool
    range: str
    after: str
    before: str
    order: str
    rows: int
    cursor: str
    #: Another namespace that the search text names; empty if it names none.
    elsewhere: str = ""

    #: The list's path, and the names of its scope and its time range in the URL.
    path: ClassVar[str]
    scope_name: ClassVar[str]
    range_name: ClassVar[str]
    #: Tabs by their names in the URL; the first one is shown unless another is chosen.
    views: ClassVar[Mapping[str, Tab]]
    ranges: ClassVar[Mapping[str, Range]]
    #: What the search field completes: words such as `tag:eu`, which stand for the parameter `tag`.
    words: ClassVar[frozenset[str]] = frozenset({"tag"})
    #: The orders in which every tab can be listed.
    orders: ClassVar[frozenset[str]] = frozenset()
    #: Tabs that list the earliest first unless another order is chosen.
    earliest_first: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def read(cls, query: Fields, limits: UiLimits, scope: str) -> Self:
        """Parses a query. Unknown values are ignored, not refused, so that old links still open."""
        view = query.get("view") if query.get("view") in cls.views else next(iter(cls.views))
        after, before = query.get("from"), query.get("to")
        # The form sends both, a link only one of them.
        span = query.get(cls.range_name) if cls.range_name in query else CUSTOM_RANGE if after or before else ""
        order = query.get("order")
        search, words = cls._search(query)
        return cls(
            scope=scope,
            view=view,
            search=search,
            tags=_tags([*query.all("tag"), *words.get("tag", ())]),
            destination=words.get("to", [query.get("destination")])[-1],
            error=words.get("error", [query.get("error")])[-1],
            starred=query.get("starred") == "yes",
            range=span if span in cls.ranges or span == CUSTOM_RANGE else "",
            after=after,
            before=before,
            order=order if order in cls.orders else cls._order(view),
            rows=min(whole_number(query.get("rows")), limits.list_rows_max) or limits.list_rows,
            cursor=query.get("cursor"),
            elsewhere=words.get("ns", [""])[-1],
        )

    @classmethod
    def _search(cls, query: Fields) -> tuple[str, dict[str, list[str]]]:
        """The text of the search field, without the words that stand for other parameters, and these by name."""
        text = query.exact("q")
        found: dict[str, list[str]] = {}
        for word in re.findall(cls._word(), text):
            name, _, value = word.partition(":")
            found.setdefault(name, []).append(value)
        rest = " ".join(re.sub(cls._word(), "", text).split()) if found else text
        return rest, found

    @classmethod
    def last_word(cls, text: str) -> str:
        """The word such as `tag:eu` with which a search text ends; empty if it ends with something else."""
        found = re.search(rf"{cls._word()}\Z", text)
        return found[0] if found else ""

    @classmethod
    def _word(cls) -> str:
        return rf"(?<!\S)(?:{'|'.join(sorted(cls.words))}):{_VALUE}"

    @property
    def chips(self) -> list[tuple[str, str, str, str]]:
        """What narrows the list besides the search text and the time range: the word, its parameter, its value, and the URL
        of the list without it."""
        shown = [
            ("tag", "tag", tag, self.link(tags=tuple(each for each in self.tags if each != tag))) for tag in self.tags
        ]
        shown += [("to", "destination", self.destination, self.link(destination=""))] if self.destination else []
        return [*shown, *([("error", "error", self.error, self.link(error=""))] if self.error else [])]

    @classmethod
    def _order(cls, view: str) -> str:
        """The order of a tab unless another is chosen."""
        return "asc" if view in cls.earliest_first else "desc"

    @property
    def completions(self) -> list[str]:
        """What the search field offers while a word is typed: the tags that narrow the list, and common errors."""
        return [*(f"tag:{tag}" for tag in self.tags), *self.errors]

    @property
    def errors(self) -> list[str]:
        """The words for common errors, if the list can be narrowed by an error."""
        return [f"error:{each}" for each in _COMMON_ERRORS] if "error" in self.words else []

    @property
    def several(self) -> bool:
        """Whether the list is one of all namespaces or tenants."""
        return self.scope == EVERY

    @property
    def query(self) -> str:
        """The scope as the query of another page's address, empty for all."""
        return "" if self.several else urlencode({self.scope_name: self.scope})

    @property
    def narrowed(self) -> bool:
        """Whether anything but the scope and the tab limits the list."""
        return bool(self.search or self.chips or self.range or self.starred)

    def bounds(self, now_us: int) -> tuple[str, str]:
        """The start and end of the time range, as text; empty for none."""
        if self.range == CUSTOM_RANGE:
            return instant_text(self.after), instant_text(self.before)
        _, *distances = self.ranges[self.range]
        after, before = ("" if us is None else format_instant(now_us + us) for us in distances)
        return after, before

    def link(self, path: str = "", **changes: object) -> str:
        """The URL of this list with some filters changed. Unless `cursor` is given, it starts at the first page."""
        wanted = replace(self, **{"cursor": "", **changes})  # type: ignore[arg-type]
        pairs = [] if wanted.scope == EVERY else [(self.scope_name, wanted.scope)]
        pairs.append(("view", wanted.view))
        pairs += [("q", wanted.search)] if wanted.search else []
        pairs += [("tag", tag) for tag in wanted.tags]
        pairs += [("destination", wanted.destination)] if wanted.destination else []
        pairs += [("error", wanted.error)] if wanted.error else []
        pairs += [("starred", "yes")] if wanted.starred else []
        if wanted.range == CUSTOM_RANGE:
            pairs += [(name, text) for name, text in (("from", wanted.after), ("to", wanted.before)) if text]
        elif wanted.range:
            pairs.append((self.range_name, wanted.range))
        pairs += [("order", wanted.order)] if wanted.order != self._order(wanted.view) else []
        pairs += [("rows", str(wanted.rows))] if wanted.rows != UiLimits().list_rows else []
        pairs += [("cursor", wanted.cursor)] if wanted.cursor else []
        return f"{path or self.path}?{urlencode(pairs)}"

    def tab(self, view: str) -> str:
        """The URL of another tab, in that tab's default order."""
        return self.link(view=view, order=self._order(view))


def _tags(texts: Iterable[str]) -> tuple[str, ...]:
    distinct = dict.fromkeys(tag for text in texts for tag in split_tags(text))
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
