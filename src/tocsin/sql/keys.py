"""Key ranges as positions of rows, and what is known of a shard's left edge, for stores that delete ranges."""

from __future__ import annotations

from tocsin.ports.store import KEY_MAX, KEY_MIN, FireKey, ShardBatch

INSTANT_MIN, INSTANT_MAX = KEY_MIN[0], KEY_MAX[0]
UUID_MIN, UUID_MAX = b"\x00" * 16, b"\xff" * 16


def at_least(key: FireKey) -> tuple[int, bytes]:
    """The smallest position of a row not below the key. A key may lack its uuid."""
    at, uuid = key
    return at, uuid or UUID_MIN


def at_most(key: FireKey) -> tuple[int, bytes] | None:
    """The greatest position of a row not above the key; None if there can't be one."""
    at, uuid = key
    if uuid:
        return at, uuid
    return (at - 1, UUID_MAX) if at > INSTANT_MIN else None


def above(key: FireKey) -> tuple[int, bytes] | None:
    """The smallest position of a row above the key; None if there can't be one."""
    at, uuid = key
    if not uuid:
        return at, UUID_MIN
    if uuid != UUID_MAX:
        return at, (int.from_bytes(uuid, "big") + 1).to_bytes(16, "big")
    return (at + 1, UUID_MIN) if at < INSTANT_MAX else None


class LeftEdges:
    """The key below which a shard has no live row, where it is known.

    A database keeps deleted rows in the index until it cleans up, all of them at the left edge, where every range delete
    would begin. So each range delete begins where the last one ended, or at the lowest row written since. During an epoch
    only this process writes to the shard, which makes the edge exact; any other event makes it unknown."""

    def __init__(self) -> None:
        self._edges: dict[int, tuple[int, bytes, FireKey]] = {}

    def take(self, batch: ShardBatch) -> FireKey:
        """The edge for this batch, KEY_MIN if it is unknown. It becomes unknown until `put`."""
        known = self._edges.pop(batch.shard_id, None)
        if known is None or known[:2] != (batch.epoch, batch.owner):
            return KEY_MIN
        return known[2]

    def put(self, batch: ShardBatch, edge: FireKey) -> None:
        """Sets the edge after the batch became durable."""
        if batch.delete_to is not None:
            edge = max(edge, batch.delete_to)
        if edge == KEY_MIN:
            return
        lowest = min(batch.upserts).key if batch.upserts else edge
        self._edges[batch.shard_id] = (batch.epoch, batch.owner, min(edge, lowest))
