"""Tables of the System pages that are in memory as a whole: searched by a part of the text, and shown in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from tocsin.web.pages.context import RequestContext

T = TypeVar("T")

#: Rows of a part. Each namespace's numbers cost reads of the store.
ROWS = 50


@dataclass(frozen=True, slots=True)
class TablePart(Generic[T]):
    """A part of a table. `total` counts all rows that match `search`; `here`, `following` and `first` are the URLs of this
    part, of the next one and of the beginning, the latter two empty at the end and at the beginning."""

    rows: list[T]
    total: int
    search: str
    here: str
    following: str
    first: str


def table_part(
    context: RequestContext, items: Iterable[T], name_of: Callable[[T], str], text_of: Callable[[T], str]
) -> TablePart[T]:
    """The rows of which the query's `q` is a part of their text, in any case, that follow the one named `after`."""
    search, after = context.query.get("q"), context.query.exact("after")
    wanted = search.casefold()
    found = [each for each in items if wanted in text_of(each).casefold()]
    begin = next((place for place, each in enumerate(found, 1) if after and name_of(each) == after), 0)
    rows, path = found[begin : begin + ROWS], context.path
    kept = {"q": search} if search else {}
    more = begin + ROWS < len(found)
    following = f"{path}?{urlencode({**kept, 'after': name_of(rows[-1])})}" if more else ""
    here = f"{path}?{urlencode({**kept, 'after': after})}"
    return TablePart(rows, len(found), search, here, following, f"{path}?{urlencode(kept)}" if begin else "")
