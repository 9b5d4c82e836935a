"""Bounds of key ranges as places of rows, and what is known of a shard's left edge, for stores that delete ranges in SQL."""

from __future__ import annotations

from tocsin.ports.store import KEY_MAX, KEY_MIN, FireKey, ShardBatch

INSTANT_MIN, INSTANT_MAX = KEY_MIN[0], KEY_MAX[0]
UUID_MIN, UUID_MAX = b"\x00" * 16, b"\xff" * 16


def at_least(key: FireKey) -> tuple[int, bytes]:
    """The smallest place of a row that is not below the key; a key may lack its uuid."""
    at, uuid = key
    return at, uuid or UUID_MIN


def at_most(key: FireKey) -> tuple[int, bytes] | None:
    """The greatest place of a row that is not above the key; None when there can't be one."""
    at, uuid = key
    if uuid:
        return at, uuid
    return (at - 1, UUID_MAX) if at > INSTANT_MIN else None


def above(key: FireKey) -> tuple[int, bytes] | None:
    """The smallest place of a row that is above the key; None when there can't be one."""
    at, uuid = key
    if not uuid:
        return at, UUID_MIN
    if uuid != UUID_MAX:
        return at, (int.from_bytes(uuid, "big") + 1).to_bytes(16, "big")
    return (at + 1, UUID_MIN) if at < INSTANT_MAX else None


class LeftEdges:
    """Below which key a shard has no live row, where this is known.

    The rows that a queue has deleted stay in its index until the database cleans up, all at the left edge, where every
    range delete begins. So each begins where the last one ended, or at the lowest row written since. A shard's batches
    are this process's alone while its epoch lasts, which makes the knowledge exact; whatever else happens ends it.
    """

    def __init__(self) -> None:
        self._edges: dict[int, tuple[int, bytes, FireKey]] = {}

    def take(self, batch: ShardBatch) -> FireKey:
        """The edge for this batch. It is unknown from now on, until `put`."""
        known = self._edges.pop(batch.shard_id, None)
        if known is None or known[:2] != (batch.epoch, batch.owner):
            return KEY_MIN
        return known[2]

    def put(self, batch: ShardBatch, edge: FireKey) -> None:
        """After the batch became durable."""
        if batch.delete_to is not None:
            edge = max(edge, batch.delete_to)
        if edge == KEY_MIN:
            return
        lowest = min(batch.upserts).key if batch.upserts else edge
        self._edges[batch.shard_id] = (batch.epoch, batch.owner, min(edge, lowest))
