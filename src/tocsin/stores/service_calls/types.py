"""Column types: integers or plain text in Python, and their form in each database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine

from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, US_PER_SECOND, format_instant, parse_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT_CHARS = 27


class Instant(TypeDecorator[int]):
    """Microseconds since 1970 in Python. In SQLite, text of fixed width with six fractional digits, which sorts by
    time; in PostgreSQL a timestamptz, which has the same precision."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    # Returned without the decorator's wrapper, because they run for every row.
    def bind_processor(self, dialect: Dialect) -> Callable[[int | None], Any]:
        return to_datetime if dialect.name == "postgresql" else to_text

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], int | None]:
        return from_datetime if dialect.name == "postgresql" else from_text


@lru_cache(maxsize=4_096)
def _second_text(second: int) -> str:
    """Cached because many rows share few seconds, and this is most of the work."""
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
    """Exact, without floating point."""
    return None if instant_us is None else _EPOCH + timedelta(microseconds=instant_us)


def from_datetime(moment: datetime | None) -> int | None:
    """Exact, without floating point."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        # asyncpg encodes the first and last datetime as -infinity and infinity, and decodes those without a time zone.
        return INSTANT_MAX if moment.year > 1 else INSTANT_MIN
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * US_PER_SECOND + since.microseconds


class FreeText(TypeDecorator[str]):
    """Text from outside, which may contain NUL characters. PostgreSQL cannot store them, so both databases store the
    replacement character instead."""

    impl = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None]:
        return _without_nul

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        return None


def _without_nul(text: str | None) -> str | None:
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


#: Ids, statuses, tags. In PostgreSQL they sort by bytes, as in SQLite: pages depend on that order, and an index of another
#: collation would not serve ranges. Ids do not use the native type uuid: they are text everywhere else, and converting them
#: costs more than the 20 bytes it would save.
KeyText = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

#: Counts and row numbers. A STRICT table accepts only INTEGER, which in SQLite always has up to 64 bits.
Number = BigInteger().with_variant(Integer(), "sqlite")


class Json(TypeDecorator[Any]):
    """Values of one type, stored as the JSON text that msgspec writes. PostgreSQL's jsonb would reorder members, refuse
    "\\u0000", and parse what only Tocsin reads."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str | None]:
        encode = msgspec.json.Encoder().encode
        return lambda value: None if value is None else encode(value).decode()

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], Any]:
        decode = msgspec.json.Decoder(self.kind).decode
        return lambda text: None if text is None else decode(text)


class Member(TypeDecorator[Any]):
    """Members of an enumeration of text, stored as their values."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str | None]:
        return lambda member: None if member is None else member.value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str], StrEnum]:
        # Calling the class costs ten times as much.
        return {member.value: member for member in self.kind}.__getitem__


class Digits(TypeDecorator[int]):
    """Numbers that the reference schema stores as text."""

    impl = KeyText
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[int | None], str | None]:
        return lambda number: None if number is None else str(number)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], int | None]:
        return lambda text: None if text is None else int(text)
