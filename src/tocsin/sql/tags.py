"""Tags in one text column: each tag is between two U+001F characters, so that a whole tag is found by a text search."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.model.errors import DefiniteFailure

_SEPARATOR = "\x1f"


def tags_text(tags: Iterable[str]) -> str:
    """The stored form of one tag or more."""
    text = _SEPARATOR + _SEPARATOR.join(tags) + _SEPARATOR
    if text.count(_SEPARATOR) != len(tuple(tags)) + 1:
        raise DefiniteFailure("a tag contains U+001F, which separates stored tags")
    return text


def tags_of(text: str | None) -> tuple[str, ...]:
    """The tags of a stored form; none for None."""
    return () if text is None else tuple(text[1:-1].split(_SEPARATOR))
