"""Identity and placement: a timer's UUID, and its shard; UUIDs of version 7 (RFC 9562 section 5.7), which sort by time.

`sdks/vectors/placement.json` has test vectors for implementations in other languages.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable

#: The UUIDv5 name space of all timers. It must never change: every stored key depends on it.
TOCSIN_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "timers.tocsin.dev")

_PREFIX = hashlib.sha1(TOCSIN_NAMESPACE.bytes, usedforsecurity=False)


def timer_uuid(namespace: str, timer_id: str) -> bytes:
    """The 16 bytes of uuid5(TOCSIN_NAMESPACE, namespace + NUL + id), RFC 9562 section 5.5."""
    return _uuid5(f"{namespace}\0{timer_id}")


def schedule_uuid(namespace: str, schedule_id: str) -> bytes:
    """Likewise for a schedule. Timers' ids have no NUL, so that no timer has it."""
    return _uuid5(f"{namespace}\0schedule\0{schedule_id}")


def monitor_uuid(namespace: str, monitor_id: str) -> bytes:
    """Likewise for a monitor."""
    return _uuid5(f"{namespace}\0monitor\0{monitor_id}")


def flow_uuid(namespace: str, match: str, key: str) -> bytes:
    """What identifies the tokens of a flow's key, or with an empty one of all keys of the rule together. It begins with the
    hash of the rule, which determines the rule's home."""
    digest = hashlib.sha256(f"{namespace}\0{match}\0{key}".encode()).digest()
    return namespace_hash(f"{namespace}/{match}").to_bytes(4, "big") + digest[:12]


def _uuid5(name: str) -> bytes:
    state = _PREFIX.copy()
    state.update(name.encode())
    digest = bytearray(state.digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


def namespace_hash(namespace: str) -> int:
    """The first four bytes of the name's SHA-1, big-endian: where the namespace's arc begins on the ring of shards."""
    return int.from_bytes(hashlib.sha1(namespace.encode(), usedforsecurity=False).digest()[:4], "big")


def shard_of(arc_start: int, uuid_bytes: bytes, num_shards: int, total_shards: int) -> int:
    """The shard of a timer. `arc_start` is the `namespace_hash` of its namespace."""
    return (arc_start + int.from_bytes(uuid_bytes[:4], "big") % num_shards) % total_shards


def shards_of_namespace(arc_start: int, num_shards: int, total_shards: int) -> list[int]:
    """The shards in which the namespace can have timers, each once, in ring order."""
    return [(arc_start + i) % total_shards for i in range(min(num_shards, total_shards))]


_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
_RANDOM_BITS = 74
_COUNTER_STEP_BITS = 32
#: Random bytes requested from the system at once: each such call is expensive and releases the interpreter lock.
_POOL_BYTES = 4_096


def is_uuid7(text: str) -> bool:
    """Whether the text is a UUID of version 7 in its canonical form, lower case."""
    return _UUID7.match(text) is not None


class RandomPool:
    """The system's random bytes, fetched many at a time; each byte is used once. Not thread-safe."""

    def __init__(self) -> None:
        self._bytes = b""
        self._at = 0

    def __call__(self, count: int) -> bytes:
        """The next `count` bytes, at most `_POOL_BYTES`."""
        end = self._at + count
        if end > len(self._bytes):
            self._bytes, self._at, end = os.urandom(_POOL_BYTES), 0, count
        taken = self._bytes[self._at : end]
        self._at = end
        return taken


class Uuid7Source:
    """Generates ids that never decrease within this source, even if the clock is set back.

    Within one millisecond, or while the clock is behind, the 74 bits after the timestamp are incremented by random steps (RFC
    9562 section 6.2 method 2); an overflow borrows from the next millisecond.
    """

    def __init__(self, now_us: Callable[[], int], random_bytes: Callable[[int], bytes] | None = None) -> None:
        self._now_us = now_us
        self._random_bytes = RandomPool() if random_bytes is None else random_bytes
        self._ms = -1
        self._tail = 0

    def __call__(self) -> str:
        """The next id, in canonical form."""
        now_ms = self._now_us() // 1_000
        if now_ms > self._ms:
            self._ms = now_ms
            # The top bit stays free, so that all ids of a millisecond fit.
            self._tail = int.from_bytes(self._random_bytes(10), "big") >> (80 - _RANDOM_BITS + 1)
        else:
            self._tail += 1 + (int.from_bytes(self._random_bytes(4), "big") >> (32 - _COUNTER_STEP_BITS))
            if self._tail >> _RANDOM_BITS:
                self._ms += 1
                self._tail &= (1 << _RANDOM_BITS) - 1
        return uuid7_text(self._ms, self._tail)


class CountedUuid7:
    """Generates ids several times as fast as `Uuid7Source`, for what every request creates.

    The timestamp is followed by 26 random bits of this source and a 48-bit counter that starts at random. So the ids of one
    source never repeat and are in order within a millisecond. One id reveals the next, which is harmless for an id that
    grants nothing.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._ms = -1
        self._head = ""
        own = int.from_bytes(os.urandom(4), "big")
        self._own = f"7{own >> 20:03x}-{0x8000 | own & 0x3FFF:04x}-"
        self._count = int.from_bytes(os.urandom(6), "big")

    def __call__(self) -> str:
        """The next id, in canonical form."""
        ms = self._now_us() // 1_000
        if ms != self._ms:
            self._ms = ms
            digits = f"{ms & ((1 << 48) - 1):012x}"
            self._head = f"{digits[:8]}-{digits[8:]}-{self._own}"
        self._count = self._count + 1 & (1 << 48) - 1
        return f"{self._head}{self._count:012x}"


def uuid7_text(timestamp_ms: int, tail: int) -> str:
    """The canonical form of a UUID v7 from its timestamp and its 74 other bits."""
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    value = (timestamp_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
