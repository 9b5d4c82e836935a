"""Values as literals in MySQL statements, and statements split into packets.

Statements are texts that contain their values: only in this form is a statement with thousands of rows one round trip for
MySQL, MariaDB and TiDB alike. Sessions use utf8mb4, in which no byte of a multi-byte character is a quote or a backslash, and
a mode in which backslashes escape.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterable, Iterator, Sequence

from tocsin.model.errors import DefiniteFailure
from tocsin.sql.dialect import Value
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN


def text(value: str) -> bytes:
    """A quoted text. Raises UnicodeError if it can't be encoded."""
    return b"'%b'" % value.encode().replace(b"\\", b"\\\\").replace(b"'", b"\\'")


def bytes_literal(value: bytes) -> bytes:
    """Quoted bytes, shorter than hexadecimal for what is mostly text."""
    return b"_binary'%b'" % value.replace(b"\\", b"\\\\").replace(b"'", b"\\'")


def hexed(value: bytes) -> bytes:
    """Bytes in hexadecimal, for keys and random bytes."""
    return b"x'%b'" % hexlify(value)


def listed(values: Iterable[bytes]) -> bytes:
    """A list for IN of values that are already literals."""
    return b"(%b)" % b", ".join(values)


def instant(value: int) -> bytes:
    """A bigint. Raises DefiniteFailure for a value out of range."""
    if not INSTANT_MIN <= value <= INSTANT_MAX:
        raise DefiniteFailure(f"{value} is not a 64-bit instant")
    return b"%d" % value


def literal(value: Value) -> bytes:
    """Any value."""
    if value is None:
        return b"NULL"
    if isinstance(value, str):
        return text(value)
    return instant(value) if isinstance(value, int) else hexed(value)


def filled(sql: str, values: Sequence[Value]) -> bytes:
    """The statement with the values instead of each `?`."""
    first, *others = sql.encode().split(b"?")
    return first + b"".join(literal(value) + other for value, other in zip(values, others, strict=True))


def place_range(first: tuple[int, bytes], last: tuple[int, bytes]) -> bytes:
    """A condition for the rows between two positions, both included, written as ranges of the key: servers don't derive
    ranges from row comparisons. `last` must not be below `first`."""
    (first_at, first_uuid), (last_at, last_uuid) = first, last
    if first_at == last_at:
        return b"timer_execute_at = %d AND timer_uuid BETWEEN %b AND %b" % (
            first_at,
            hexed(first_uuid),
            hexed(last_uuid),
        )
    parts = [b"timer_execute_at = %d AND timer_uuid >= %b" % (first_at, hexed(first_uuid))]
    if first_at + 1 < last_at:
        parts.append(b"timer_execute_at BETWEEN %d AND %d" % (first_at + 1, last_at - 1))
    parts.append(b"timer_execute_at = %d AND timer_uuid <= %b" % (last_at, hexed(last_uuid)))
    return b"(%b)" % b" OR ".join(parts)


def inserts(head: bytes, rows: Iterable[bytes], tail: bytes, bytes_max: int) -> Iterator[bytes]:
    """INSERT statements, each with as many rows as fit into `bytes_max`. Raises DefiniteFailure for a row that doesn't
    fit."""
    room = bytes_max - len(head) - len(tail)
    taken: list[bytes] = []
    size = 0
    for row in rows:
        if len(row) + 1 > room:
            raise DefiniteFailure(
                f"a row of {len(row)} bytes does not fit into a packet of {bytes_max} bytes; raise the server's "
                "max_allowed_packet"
            )
        if size + len(row) + 1 > room:
            yield head + b",".join(taken) + tail
            taken, size = [], 0
        taken.append(row)
        size += len(row) + 1
    if taken:
        yield head + b",".join(taken) + tail


def packets(statements: Iterable[bytes], bytes_max: int) -> Iterator[list[bytes]]:
    """The statements in order, grouped into packets of at most `bytes_max`."""
    taken: list[bytes] = []
    size = 0
    for statement in statements:
        if taken and size + len(statement) + 2 > bytes_max:
            yield taken
            taken, size = [], 0
        taken.append(statement)
        size += len(statement) + 2
    if taken:
        yield taken
