"""UUIDs, and where a timer is stored."""

from __future__ import annotations

import hashlib
import os
import time
import uuid

_TIMERS = uuid.uuid5(uuid.NAMESPACE_DNS, "timers.tocsin.dev")


def timer_uuid(namespace: str, timer_id: str) -> uuid.UUID:
    """The UUID of the timer with this id."""
    return uuid.uuid5(_TIMERS, f"{namespace}\0{timer_id}")


def schedule_uuid(namespace: str, schedule_id: str) -> uuid.UUID:
    """The UUID of the schedule with this id."""
    return uuid.uuid5(_TIMERS, f"{namespace}\0schedule\0{schedule_id}")


def new_key() -> str:
    """An idempotency key that nobody has used: a random UUID (RFC 9562, version 4), written without an object for it."""
    value = int.from_bytes(os.urandom(16), "big") & ~(0xF << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def shard_of(namespace: str, timer_id: str, num_shards: int, total_shards: int) -> int:
    """The shard that has the timer: the n-th of its namespace's, which follow one another."""
    first = int.from_bytes(hashlib.sha1(namespace.encode(), usedforsecurity=False).digest()[:4], "big")
    nth = int.from_bytes(timer_uuid(namespace, timer_id).bytes[:4], "big") % num_shards
    return (first + nth) % total_shards


def new_tenant_id() -> str:
    """The id of a new tenant, a UUID of version 7. Store it: the tenant's calls are found by it alone."""
    return str(uuid7(time.time_ns() // 1_000_000))


def uuid7(now_ms: int) -> uuid.UUID:
    """A UUID of version 7 (RFC 9562) of that time in Unix milliseconds: 74 of its bits are random."""
    value = int.from_bytes(now_ms.to_bytes(6, "big") + os.urandom(10), "big")
    value = value & ~(0xF << 76) | 7 << 76
    return uuid.UUID(int=value & ~(0b11 << 62) | 0b10 << 62)
