"""The keys by which stores without SQL sort the timers of a shard: bytes in unsigned order, of which the first is the kind.

    "L" instant uuid               a live timer
    "S" instant uuid               a suspended one
    "H" instant uuid generation    a finished one
    "E" instant uuid generation    a failure, by the instant at which it failed

Instants are eight bytes that sort as the numbers do.
"""

from __future__ import annotations

from tocsin.ports.store import GENERATION_END, GENERATION_LOST, FailurePlace, FireKey, ListCursor

LIVE, SUSPENDED, FINISHED, FAILED = b"L", b"S", b"H", b"E"

UUID_END = b"\xff" * 16
_SIGN = 2**63


def instant_bytes(us: int) -> bytes:
    """Eight bytes that sort as the instants do; OverflowError beyond 64 bits."""
    return (us + _SIGN).to_bytes(8, "big")


def instant_of(data: bytes) -> int:
    """The instant in eight bytes."""
    return int.from_bytes(data, "big") - _SIGN


def order_key(kind: bytes, at: int, uuid: bytes, generation: bytes = b"") -> bytes:
    """The key of a timer; those of live and suspended ones have no generation. A bound may lack its uuid."""
    return kind + instant_bytes(at) + uuid + generation


def fire_key_of(key: bytes) -> FireKey:
    """Instant and uuid of a key."""
    return instant_of(key[1:9]), key[9:25]


def place_of_key(key: bytes, *, descending: bool = False) -> ListCursor:
    """The place of a key in a list. That of a key without a generation comes after all generations in the list's order."""
    return (*fire_key_of(key), key[25:] or (GENERATION_LOST if descending else GENERATION_END))


def behind(key: bytes) -> bytes:
    """The smallest key above this one."""
    return key + b"\x00"


def before(key: bytes) -> bytes:
    """A bound below this key, and above all lower ones that are as long."""
    return (int.from_bytes(key, "big") - 1).to_bytes(len(key), "big") + GENERATION_END + b"\xff"


def range_behind(kind: bytes, place: ListCursor, last_us: int) -> tuple[bytes, bytes]:
    """The first and the last key of a kind behind a place in a list, up to an instant. The row at the place itself may still
    follow, if keys of its kind have no generation."""
    at, uuid, generation = place
    if kind == FINISHED:
        return behind(order_key(kind, at, uuid, generation)), order_key(kind, last_us, UUID_END, GENERATION_END)
    first = order_key(kind, at, uuid)
    return behind(first) if generation == GENERATION_END else first, order_key(kind, last_us, UUID_END)


def range_before(kind: bytes, place: ListCursor, last_us: int) -> tuple[bytes, bytes]:
    """The lowest and the highest key of a kind before a place in a list, down to an instant. The row at the place itself may
    still be one, if keys of its kind have no generation."""
    at, uuid, generation = place
    lowest = order_key(kind, last_us, b"")
    if kind == FINISHED:
        return lowest, before(order_key(kind, at, uuid, generation))
    here = order_key(kind, at, uuid)
    return lowest, before(here) if generation == GENERATION_LOST else here


def failures_behind(after: FailurePlace | None, *, descending: bool) -> tuple[bytes, bytes]:
    """The first key of failures behind a place and a key above all of them, or, in the opposite order, the first key and that
    of the place: the upper bound is none of the failures asked for."""
    if descending and after is not None:
        return FAILED, order_key(FAILED, *after)
    return FAILED if after is None else behind(order_key(FAILED, *after)), bytes([FAILED[0] + 1])


def failure_place_of(key: bytes) -> FailurePlace:
    """The place of a failure's key."""
    return (*fire_key_of(key), key[25:])
