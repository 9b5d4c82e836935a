"""Writes of timers, shard items and members: batches cut into transactions, claims, releases, heartbeats."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown
from tocsin.ports.observer import ShardSizeEstimated
from tocsin.ports.store import GENERATION_END, Applied, FailurePlace, Member, ShardBatch
from tocsin.stores.client_store import ClientStore
from tocsin.stores.dynamodb.client import DynamoClient, RequestKind, Response, time_of
from tocsin.stores.dynamodb.errors import ConditionFailed
from tocsin.stores.dynamodb.items import failure_item, history_item, item_bytes, run_item, stored_item
from tocsin.stores.dynamodb.keys import (
    BY_EXPIRY,
    MEMBERS,
    Item,
    failure_key,
    history_key,
    key,
    partition_of,
    run_key,
    shard_key,
    timer_key,
)
from tocsin.stores.dynamodb.reads import between_keys
from tocsin.stores.options import DynamoOptions
from tocsin.stores.orders import instant_bytes

_UUID_BYTES = 16
#: Size of the shard item with its list of uuids, and of an action besides its item, rounded up.
_FENCE_BYTES, _ACTION_BYTES = 4_096, 64
_GIB = 1 << 30


class Atom:
    """The actions on one uuid and on those that belong to it, which stay in one transaction (rule 18), except resolved
    failures for which it has no room."""

    def __init__(self, uuid: bytes) -> None:
        self.uuids = {uuid: None}
        self.actions: dict[bytes, Item] = {}
        self.bytes = 0
        self.deletes = False

    def put(self, item: Item) -> None:
        """Adds a put. A later one with the same key replaces it."""
        self.actions[item["s"]["B"]] = {"Put": {"Item": item}}
        self.bytes += item_bytes(item) + _ACTION_BYTES

    def delete(self, place: Item) -> None:
        """Adds a delete."""
        self.actions[place["s"]["B"]] = {"Delete": {"Key": place}}
        self.bytes += item_bytes(place) + _ACTION_BYTES
        self.deletes = True


def atoms_of(batch: ShardBatch, options: DynamoOptions) -> list[Atom]:
    """The batch by uuid, atoms without deletes first. Raises DefiniteFailure for a row that exceeds a limit."""
    # An entry in the index by expiry costs as much as the item; only `purge_history` reads it.
    indexed = not options.time_to_live
    atoms: dict[bytes, Atom] = {}
    shard_id = batch.shard_id

    def atom_of(uuid: bytes) -> Atom:
        subject = batch.together.get(uuid, uuid)
        atom = atoms.setdefault(subject, Atom(subject))
        atom.uuids[uuid] = None
        return atom

    for row in batch.upserts:
        atom_of(row.uuid).put(stored_item(shard_id, row))
    for ended in batch.history:
        atom_of(ended.uuid).put(history_item(shard_id, ended, indexed=indexed))
    for run in batch.runs:
        atom_of(run.uuid).put(run_item(shard_id, run, indexed=indexed))
    for failure in batch.failures:
        atom_of(failure.uuid).put(failure_item(shard_id, failure, indexed=indexed))
    for uuid in batch.deletes:
        atom_of(uuid).delete(timer_key(shard_id, uuid))
    full: list[Atom] = []
    for uuid, generation in batch.resolved:
        atom = atom_of(uuid)
        if len(atom.actions) >= options.actions_max - 1:
            # A schedule may have more replays than a transaction has room for. The others may follow its row.
            full.append(atoms.pop(batch.together.get(uuid, uuid)))
            atom = atom_of(uuid)
        atom.delete(failure_key(shard_id, uuid, generation))
    return sorted([*full, *atoms.values()], key=lambda atom: atom.deletes)


def chunks_of(batch: ShardBatch, options: DynamoOptions) -> list[list[Item]]:
    """The batch's transactions, in order, as few as possible; each begins with the fence."""
    actions_max, bytes_max = options.actions_max - 1, options.bytes_max - _FENCE_BYTES
    chunks: list[list[Atom]] = [[]]
    actions = size = 0
    for atom in atoms_of(batch, options):
        if len(atom.actions) > actions_max or atom.bytes > bytes_max:
            subject = next(iter(atom.uuids)).hex()
            raise DefiniteFailure(
                f"what happens to {subject} takes {len(atom.actions)} writes of {atom.bytes} bytes; a transaction of "
                f"DynamoDB has room for {actions_max} of {bytes_max}"
            )
        if actions + len(atom.actions) > actions_max or size + atom.bytes > bytes_max:
            chunks.append([])
            actions = size = 0
        chunks[-1].append(atom)
        actions += len(atom.actions)
        size += atom.bytes
    return [[_fence(batch, chunk), *_actions(chunk)] for chunk in chunks]


def _actions(chunk: Iterable[Atom]) -> Iterable[Item]:
    return (action for atom in chunk for action in atom.actions.values())


def _fence(batch: ShardBatch, chunk: Iterable[Atom]) -> Item:
    """Rule 1: an update of the shard item on the condition that epoch and owner are the batch's. The item lists the uuids
    of the latest transaction, for `_settle`."""
    return {
        "Update": {
            "Key": shard_key(batch.shard_id),
            "UpdateExpression": "SET u = :u ADD c :one",
            "ConditionExpression": "v = :v AND w = :w",
            "ExpressionAttributeValues": {
                ":u": {"B": b"".join(dict.fromkeys(uuid for atom in chunk for uuid in atom.uuids))},
                ":one": {"N": "1"},
                ":v": {"N": str(batch.epoch)},
                ":w": {"B": batch.owner},
            },
        }
    }


def _observe_size(client: DynamoClient, shard_id: int, response: Response) -> None:
    """Reports DynamoDB's estimate of the shard's size, an upper bound in GiB, if it has changed."""
    of_table = response.get("ItemCollectionMetrics", {}).get(client.table, ())
    ranges = [each["SizeEstimateRangeGB"] for each in of_table if each.get("SizeEstimateRangeGB")]
    if not ranges:
        return
    size_bytes = int(max(float(each[-1]) for each in ranges) * _GIB)
    if client.shard_bytes.get(shard_id) != size_bytes:
        client.shard_bytes[shard_id] = size_bytes
        client.observe(ShardSizeEstimated(shard_id, size_bytes))


async def _settle(client: DynamoClient, shard_id: int) -> None:
    """Returns when no transaction of an earlier owner is in progress any more.

    DynamoDB applies a transaction's writes item by item, and a query may see some of them before the others. So the shard
    item can already be as a predecessor's last transaction left it, and the claim succeed, while timers of that transaction
    are still about to change: a load would miss them. A transaction that reads the same items is refused, and sent again, for
    as long as that lasts. Earlier transactions were answered before the last one was sent.

    Raises OutcomeUnknown after `patience_s`: the claim stands, and must not be used. The engine claims again.
    """
    try:
        item = await client.get(shard_key(shard_id))
        uuids = b"" if item is None else bytes(item.get("u", {"B": b""})["B"])
        keys = [timer_key(shard_id, uuids[i : i + _UUID_BYTES]) for i in range(0, len(uuids), _UUID_BYTES)]
        if not keys:
            return
        await client.read_together({"Get": {"Key": each, "ProjectionExpression": "p"}} for each in keys)
    except DefiniteFailure as failure:
        raise OutcomeUnknown(
            f"shard {shard_id}: it is not known whether a transaction of its former owner has ended: {failure}"
        ) from failure


class DynamoWrites(ClientStore[DynamoClient]):
    """A store's writes of timers, shards and members."""

    def _write(self, batch: ShardBatch) -> Callable[[], Awaitable[Applied]]:
        """One transaction, or several."""
        return partial(self._apply, batch, chunks_of(batch, self._open.options))

    async def _claim(
        self, shard_id: int, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None
    ) -> int | None:
        """Claims the shard, and returns the new epoch, or None if the conditions no longer hold. One transaction with a
        token, so that it can be repeated if its response is lost."""
        client = self._open
        values: dict[str, Any] = {":w": {"B": owner}, ":next": {"N": str(expected_epoch + 1)}}
        if expected_epoch:
            values[":v"] = {"N": str(expected_epoch)}
        actions: list[Item] = [
            {
                "Update": {
                    "Key": shard_key(shard_id),
                    "UpdateExpression": "SET v = :next, w = :w",
                    "ConditionExpression": "v = :v" if expected_epoch else "attribute_not_exists(v)",
                    "ExpressionAttributeValues": values,
                }
            }
        ]
        if presumed_dead is not None:
            incarnation, counter = presumed_dead
            actions.append(
                {
                    "ConditionCheck": {
                        "Key": key(MEMBERS, incarnation),
                        "ConditionExpression": "c = :c",
                        "ExpressionAttributeValues": {":c": {"N": str(counter)}},
                    }
                }
            )
        try:
            await client.transact(actions)
        except ConditionFailed:
            return None
        await _settle(client, shard_id)
        return expected_epoch + 1

    async def _release(self, shard_id: int, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        try:
            await self._open.update(
                shard_key(shard_id),
                "REMOVE w",
                kind=RequestKind.WRITE_ONCE,
                ConditionExpression="v = :v AND w = :w",
                ExpressionAttributeValues={":v": {"N": str(epoch)}, ":w": {"B": owner}},
            )
        except ConditionFailed:
            return False
        return True

    async def _apply(self, batch: ShardBatch, chunks: Sequence[Sequence[Item]]) -> Applied:
        """Executes the transactions one after another. A failure after the first is OutcomeUnknown, because the batch is
        written in part, and only a new claim and a reload continue from what is stored."""
        client = self._open
        for number, actions in enumerate(chunks):
            try:
                response = await client.transact(actions, ReturnItemCollectionMetrics="SIZE")
            except ConditionFailed as refused:
                if number:
                    raise OutcomeUnknown(f"shard {batch.shard_id} changed hands in the middle of a batch") from refused
                return Applied.OWNERSHIP_LOST
            except DefiniteFailure as failure:
                if number:
                    raise OutcomeUnknown(f"{failure}; a part of the batch was written") from failure
                raise
            _observe_size(client, batch.shard_id, response)
        return Applied.DURABLE

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's item; returns the store's clock in microseconds."""
        sent_us = time.time_ns() // 1_000
        response = await self._open.put(
            {
                **key(MEMBERS, member.incarnation),
                "c": {"N": str(member.counter)},
                "node": {"S": member.node},
                "address": {"S": member.address},
            }
        )
        return time_of(response, sent_us)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's item; with `counter`, only while its heartbeat counter is still that one."""
        condition: dict[str, Any] = {}
        if counter is not None:
            condition = {
                "ConditionExpression": "c = :c",
                "ExpressionAttributeValues": {":c": {"N": str(counter)}},
            }
        try:
            await self._open.delete(key(MEMBERS, incarnation), **condition)
        except ConditionFailed:
            # It sent a heartbeat since, or has been removed.
            return

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` finished timers, runs and failures with expires_at ≤ now_us and returns how many, shard by
        shard. Deletes need no condition: the same row, if it is written again, expires at the same instant. With the option
        `time_to_live`, DynamoDB alone removes them, also those in the index."""
        if self._open.options.time_to_live:
            return 0
        found: list[Item] = []
        for shard_id in range(self._total_shards):
            if len(found) < limit:
                found += await self._open.items(
                    partition_of(shard_id),
                    limit=limit - len(found),
                    index=BY_EXPIRY,
                    KeyConditionExpression="p = :p AND e <= :now",
                    ExpressionAttributeValues={":now": {"B": instant_bytes(now_us)}},
                )
        return await self._delete(found)

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failures at these places."""
        await self._delete([failure_key(shard_id, uuid, generation) for _, uuid, generation in places])

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        runs = between_keys(*(run_key(shard_id, uuid, each) for each in (b"", GENERATION_END)))
        found = await self._open.items(partition_of(shard_id), ProjectionExpression="p, s", **runs)
        return await self._delete(found[: min(max(len(found) - keep, 0), limit)])

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failures, runs and finished rows of these uuids, found by one query for each uuid and kind."""
        client = self._open

        async def of_timer(key_of: Callable[[int, bytes, bytes], Item], uuid: bytes) -> list[Item]:
            generations = between_keys(*(key_of(shard_id, uuid, each) for each in (b"", GENERATION_END)))
            return await client.items(partition_of(shard_id), ProjectionExpression="p, s", **generations)

        for key_of in (failure_key, run_key, history_key):
            found = await client.in_parallel(partial(of_timer, key_of), dict.fromkeys(uuids))
            await self._delete([item for items in found for item in items])

    async def _delete(self, items: Sequence[Item]) -> int:
        await self._open.batch_delete([{"p": item["p"], "s": item["s"]} for item in items])
        return len(items)
