"""Column types: what is an int or a plain text in Python, and what each database keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine

from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, US_PER_SECOND, format_instant, parse_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT_CHARS = 27


class Instant(TypeDecorator[int]):
    """Microseconds since 1970 in Python. In SQLite text of fixed width with six fractional digits, so that the order of
    the texts is the order of time; in PostgreSQL a timestamptz, which has the same precision."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    # The processors are returned as they are, without the decorator's wrapping: they run for every row.
    def bind_processor(self, dialect: Dialect) -> Callable[[int | None], Any]:
        return to_datetime if dialect.name == "postgresql" else to_text

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], int | None]:
        return from_datetime if dialect.name == "postgresql" else from_text


@lru_cache(maxsize=4_096)
def _second_text(second: int) -> str:
    """Rows crowd on few seconds, and this is most of the work."""
    return format_instant(second * US_PER_SECOND)[:19]


@lru_cache(maxsize=4_096)
def _second_us(text: str) -> int:
    return parse_instant(text + "Z")


def to_text(instant_us: int | None) -> str | None:
    """`2027-01-31T12:00:00.000000Z`."""
    if instant_us is None:
        return None
    return f"{_second_text(instant_us // US_PER_SECOND)}.{instant_us % US_PER_SECOND:06d}Z"


def from_text(text: str | None) -> int | None:
    """Microseconds of a text in the fixed form, or in any other form of RFC 3339."""
    if text is None:
        return None
    if len(text) == _INSTANT_CHARS and text[26] == "Z":
        return _second_us(text[:19]) + int(text[20:26])
    return parse_instant(text)


def to_datetime(instant_us: int | None) -> datetime | None:
    """Exactly, without floating point."""
    return None if instant_us is None else _EPOCH + timedelta(microseconds=instant_us)


def from_datetime(moment: datetime | None) -> int | None:
    """Exactly, without floating point."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        # asyncpg sends the very first and last instants as -infinity and infinity, and hands those out without a zone.
        return INSTANT_MAX if moment.year > 1 else INSTANT_MIN
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * US_PER_SECOND + since.microseconds


class FreeText(TypeDecorator[str]):
    """Text from outside, where NUL characters may be: PostgreSQL can't keep them, so both get the replacement character."""

    impl = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None]:
        return _without_nul

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        return None


def _without_nul(text: str | None) -> str | None:
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


#: Ids, names of states, tags. In PostgreSQL by the order of their bytes, as SQLite has it: pages follow it, and indexes of
#: another collation would not serve ranges. Ids are not of the native type uuid: they are texts everywhere else, and
#: making objects of them and texts again costs more than their 20 bytes.
KeyText = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

#: JSON as it was written. PostgreSQL's jsonb would reorder members, refuse "\u0000", and decode what only we read.
Json = Text

#: Counts and numbers of rows. A STRICT table knows only INTEGER, which SQLite always keeps in up to 64 bits.
Number = BigInteger().with_variant(Integer(), "sqlite")
