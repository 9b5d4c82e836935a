"""Identity and placement: a timer's UUID, and its shard.

`sdks/vectors/placement.json` has test vectors for implementations in other languages.
"""

from __future__ import annotations

import hashlib
import uuid

#: The UUIDv5 name space of all timers. It must never change: every stored key depends on it.
TOCSIN_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "timers.tocsin.dev")

_PREFIX = hashlib.sha1(TOCSIN_NAMESPACE.bytes, usedforsecurity=False)


def timer_uuid(namespace: str, timer_id: str) -> bytes:
    """The 16 bytes of uuid5(TOCSIN_NAMESPACE, namespace + NUL + id), RFC 9562 section 5.5."""
    return _uuid5(f"{namespace}\0{timer_id}")


def schedule_uuid(namespace: str, schedule_id: str) -> bytes:
    """Likewise for a schedule. Timers' ids have no NUL, so that no timer has it."""
    return _uuid5(f"{namespace}\0schedule\0{schedule_id}")


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
