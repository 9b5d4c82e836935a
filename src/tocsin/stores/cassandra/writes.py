"""Writes of shards. Each is a conditional statement or batch of one partition, so that Paxos orders it; none has a timestamp
of its own, because a plain write could override, or be overridden by, a conditional one, whatever came first."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreError
from tocsin.ports.store import SCHEDULES_SUFFIX, Applied, FailurePlace, Member, ShardBatch, StoredRow
from tocsin.sql.rows import cut
from tocsin.stores.cassandra.client import CassandraClient, Write
from tocsin.stores.cassandra.keys import MEMBERS, end_of, failure_key, history_key, run_key, schedule_key, timer_key
from tocsin.stores.cassandra.reads import KEYS
from tocsin.stores.cassandra.rows import (
    entry_value,
    failure_value,
    history_value,
    member_value,
    row_or_damaged,
    run_value,
    schedule_value,
    stored_value,
    ttl_s,
)
from tocsin.stores.client_store import ClientStore
from tocsin.stores.orders import FAILED, FINISHED, LIVE, SUSPENDED, instant_bytes, instant_of, order_key

_FENCE = "UPDATE {t} SET latest = ? WHERE p = ? IF epoch = ? AND owner = ?"
#: The row before all others. With a condition on static columns only, the server also reads the partition's first live row:
#: without this one it would pass whatever was deleted or has expired before the first of the others.
_FIRST_ROW = "INSERT INTO {t} (p, k) VALUES (?, 0x00)"
_PUT = "INSERT INTO {t} (p, k, v) VALUES (?, ?, ?)"
_PUT_FOR = "INSERT INTO {t} (p, k, v) VALUES (?, ?, ?) USING TTL ?"
_DELETE = "DELETE FROM {t} WHERE p = ? AND k = ?"
_DELETE_RANGE = "DELETE FROM {t} WHERE p = ? AND k >= ? AND k <= ?"
#: A condition that always holds: Paxos orders the batch that begins with it. The first row has no value.
_IN_ORDER = "UPDATE {t} SET v = null WHERE p = ? AND k = 0x00 IF v = null"
_STATE = "SELECT DISTINCT latest FROM {t} WHERE p = ?"
#: The column `latest` before a shard's first batch. Each batch writes its epoch and its token, and behind them those of the
#: last batch before its owner's claim, by which an earlier owner finds the outcome of its own.
_NO_BATCH = bytes(16)
_OF_TIMER = "SELECT k, v FROM {t} WHERE p = ? AND k >= ? AND k < ?"
_RUNS = "SELECT k FROM {t} WHERE p = ? AND k >= ? AND k < ?"

#: Rows, or failures, that one batch removes.
_REMOVED_MAX = 500
#: Timers whose finished rows are read at once, to be removed.
_FORGOTTEN_MAX = 50
#: Size of a statement besides its value, rounded up.
_STATEMENT_BYTES = 150
#: Cassandra refuses writes of more than half of a segment of its commit log, 16 MiB by default.
WRITE_BYTES_MAX = 6 * 1024 * 1024


def statements_of(client: CassandraClient, batch: ShardBatch, latest: bytes) -> list[Write]:
    """The batch's statements, the fence first, which sets the column `latest`. Raises DefiniteFailure for a row or a batch
    that exceeds a limit."""
    partition = client.shard(batch.shard_id)
    try:
        writes = [
            Write(_FENCE, (latest, partition, batch.epoch, batch.owner)),
            Write(_FIRST_ROW, (partition,)),
            *_deletes(partition, batch),
            *(write for row in batch.upserts for write in _upsert(partition, row)),
            *_history(client, partition, batch),
            *_failures(client, partition, batch),
        ]
    except OverflowError:
        raise DefiniteFailure(f"shard {batch.shard_id}: an instant is out of range") from None
    except UnicodeEncodeError as error:
        raise DefiniteFailure(f"shard {batch.shard_id}: a text is not Unicode: {error}") from None
    size = sum(
        _STATEMENT_BYTES + sum(len(value) for value in each.values if isinstance(value, bytes)) for each in writes
    )
    if size > WRITE_BYTES_MAX:
        raise DefiniteFailure(
            f"a batch of {len(writes)} writes has {size} bytes; Cassandra takes {WRITE_BYTES_MAX} at once"
        )
    return writes


def _upsert(partition: str, row: StoredRow) -> Iterator[Write]:
    kind = LIVE if row.suspended is None else SUSPENDED
    yield Write(_PUT, (partition, timer_key(row.uuid), stored_value(row)))
    yield Write(_PUT, (partition, order_key(kind, row.execute_at, row.uuid), entry_value(row)))
    if row.namespace.endswith(SCHEDULES_SUFFIX):
        yield Write(_PUT, (partition, schedule_key(row.namespace, row.timer_id), schedule_value(row)))


def _deletes(partition: str, batch: ShardBatch) -> Iterator[Write]:
    for uuid in batch.deletes:
        yield Write(_DELETE, (partition, timer_key(uuid)))
    if batch.delete_to is not None:
        # The entries of the timers whose rows are deleted, and outdated ones. One range from the beginning each time: it
        # replaces all earlier ones when the server merges its files.
        yield Write(_DELETE_RANGE, (partition, LIVE, order_key(LIVE, *batch.delete_to)))
    deleted = set(batch.deletes)
    for ended in batch.history:
        if ended.namespace.endswith(SCHEDULES_SUFFIX) and ended.uuid in deleted:
            yield Write(_DELETE, (partition, schedule_key(ended.namespace, ended.timer_id)))


def _history(client: CassandraClient, partition: str, batch: ShardBatch) -> Iterator[Write]:
    at_least_s = client.options.history_ttl_min_s
    # The last one counts if a row is in the batch twice: within a batch Cassandra would keep the greater value.
    ended_rows = {(row.uuid, row.generation): row for row in batch.history}
    for ended in ended_rows.values():
        seconds = ttl_s(ended, at_least_s)
        key = history_key(ended.uuid, ended.generation)
        yield Write(_PUT_FOR, (partition, key, history_value(ended), seconds))
        key = order_key(FINISHED, ended.execute_at, ended.uuid, ended.generation)
        yield Write(_PUT_FOR, (partition, key, entry_value(ended), seconds))
    for run in {(row.uuid, row.generation): row for row in batch.runs}.values():
        key = run_key(run.uuid, run.generation)
        yield Write(_PUT_FOR, (partition, key, run_value(run), ttl_s(run, at_least_s)))


def _failures(client: CassandraClient, partition: str, batch: ShardBatch) -> Iterator[Write]:
    for failure in batch.failures:
        seconds = ttl_s(failure, client.options.history_ttl_min_s)
        key = failure_key(failure.uuid, failure.generation)
        yield Write(_PUT_FOR, (partition, order_key(FAILED, *failure.place), failure_value(failure), seconds))
        yield Write(_PUT_FOR, (partition, key, instant_bytes(failure.failed_at), seconds))


def _removed_failures(partition: str, places: Iterable[FailurePlace]) -> Iterator[Write]:
    for at, uuid, generation in places:
        yield Write(_DELETE, (partition, order_key(FAILED, at, uuid, generation)))
        yield Write(_DELETE, (partition, failure_key(uuid, generation)))


async def _places_of(
    client: CassandraClient, partition: str, identities: Iterable[tuple[bytes, bytes]]
) -> list[FailurePlace]:
    """Where the failures with these uuids and generations are listed, of which some may not exist."""
    wanted = {failure_key(*each): each for each in identities}
    read = partial(client.read, KEYS, partition)
    pages = await client.in_parallel(read, cut(list(wanted), client.options.keys_max))
    return [(instant_of(value), *wanted[key]) for page in pages for key, value in page]


async def _failures_and_runs(client: CassandraClient, partition: str, uuid: bytes) -> list[Write]:
    """The deletes of a timer's failures and runs."""
    first = failure_key(uuid)
    failures = await client.read(_OF_TIMER, partition, first, end_of(first))
    places = [(instant_of(value), uuid, key[len(first) :]) for key, value in failures]
    first = run_key(uuid)
    runs = await client.read(_RUNS, partition, first, end_of(first))
    return [*_removed_failures(partition, places), *(Write(_DELETE, (partition, key)) for (key,) in runs)]


async def _finished(client: CassandraClient, partition: str, uuid: bytes) -> list[Write]:
    """The deletes of a timer's finished rows and their entries. That of a damaged row stays, and leads to none."""
    first = history_key(uuid)
    rows = await client.read(_OF_TIMER, partition, first, end_of(first))
    deletes = []
    for key, value in rows:
        ended = row_or_damaged(key, value)
        deletes.append(Write(_DELETE, (partition, key)))
        entry = order_key(FINISHED, ended.execute_at, uuid, ended.generation)
        deletes.append(Write(_DELETE, (partition, entry)))
    return deletes


def _outcome(latest: bytes | None, epoch: int, token: bytes) -> Applied | None:
    """What a shard's column `latest` shows of a batch of this epoch whose fence failed: whether it is the last one up to this
    epoch; None if it has only later ones."""
    latest = latest or _NO_BATCH
    for i in range(0, len(latest), len(_NO_BATCH)):
        if int.from_bytes(latest[i : i + 8], "big") <= epoch:
            return Applied.DURABLE if latest[i + 8 : i + 16] == token else Applied.OWNERSHIP_LOST
    return None


async def _latest(client: CassandraClient, shard_id: int) -> bytes | None:
    """The shard's column `latest`, by a SERIAL read, which completes or excludes what an earlier write has begun."""
    rows = await client.read(_STATE, client.shard(shard_id), serial=True)
    return rows[0][0] if rows else None


async def _is_last(client: CassandraClient, batch: ShardBatch, token: bytes) -> bool:
    """Whether the batch is found, so that it is durable. Otherwise it may still come: a coordinator may have been standing
    still since it received the batch, which only a new claim excludes."""
    try:
        latest = await _latest(client, batch.shard_id)
    except StoreError:
        # The first error is the one to report.
        return False
    return _outcome(latest, batch.epoch, token) is Applied.DURABLE


async def _refused(client: CassandraClient, batch: ShardBatch, token: bytes) -> Applied:
    """The outcome of a batch whose fence failed. Another coordinator may have completed this very batch, and then another
    node's claim, before the condition was evaluated again. Raises OutcomeUnknown if what is stored doesn't show it."""
    try:
        outcome = _outcome(await _latest(client, batch.shard_id), batch.epoch, token)
    except StoreError as error:
        raise OutcomeUnknown(f"shard {batch.shard_id} has another owner, perhaps since this batch: {error}") from error
    if outcome is None:
        raise OutcomeUnknown(f"shard {batch.shard_id} has another owner, perhaps since this batch")
    return outcome


class CassandraWrites(ClientStore[CassandraClient]):
    """A store's writes of timers, shards and members."""

    #: What was the shard's latest batch when this store claimed it, and in which epoch it did.
    _before: dict[int, tuple[int, bytes]]

    def _write(self, batch: ShardBatch) -> Callable[[], Awaitable[Applied]]:
        """One conditional batch."""
        token = os.urandom(8)
        latest = batch.epoch.to_bytes(8, "big") + token
        epoch, before = self._before.get(batch.shard_id, (0, b""))
        if epoch == batch.epoch:
            latest += before
        return partial(self._apply, batch, token, statements_of(self._open, batch, latest))

    async def _claim(
        self, shard_id: int, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None
    ) -> int | None:
        """Claims the shard, and returns the new epoch, or None if the conditions no longer hold.

        The member's counter is in another partition, so it is read first, in Paxos order, instead of in the claim's
        condition. A heartbeat may come in between: a member that wakes claims its shards again (rule 6), and then either its
        claim or this one fails.

        None may also be the answer to a claim that took effect, because another coordinator completed it before it was
        evaluated again. That it finds itself would prove less: an earlier claim of this owner may have been completed
        instead."""
        client = self._open
        if presumed_dead is not None:
            incarnation, counter = presumed_dead
            rows = await client.read(
                "SELECT n FROM {t} WHERE p = ? AND k = ?", client.partition(MEMBERS), incarnation, serial=True
            )
            if not rows or rows[0][0] != counter:
                return None
        partition, epoch = client.shard(shard_id), expected_epoch + 1
        statement = "UPDATE {t} SET epoch = ?, owner = ? WHERE p = ? IF epoch = ?"
        applied = await client.write(statement, epoch, owner, partition, expected_epoch or None)
        if not applied[0]:
            return None
        latest = await _latest(client, shard_id)
        self._before[shard_id] = epoch, (latest or _NO_BATCH)[: len(_NO_BATCH)]
        return epoch

    async def _release(self, shard_id: int, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        client = self._open
        statement = "UPDATE {t} SET owner = null WHERE p = ? IF epoch = ? AND owner = ?"
        return bool((await client.write(statement, client.shard(shard_id), epoch, owner))[0])

    async def _apply(self, batch: ShardBatch, token: bytes, writes: list[Write]) -> Applied:
        """Executes the batch. If no answer decides, what is stored may, also if the fence failed."""
        client = self._open
        if batch.resolved:
            # What is listed was written by earlier batches, so it can be read before this one.
            partition = client.shard(batch.shard_id)
            places = await _places_of(client, partition, batch.resolved)
            writes = [*writes, *_removed_failures(partition, places)]
        try:
            applied = await client.write_all(writes)
        except OutcomeUnknown as unknown:
            if await _is_last(client, batch, token):
                return Applied.DURABLE
            raise unknown
        return Applied.DURABLE if applied[0] else await _refused(client, batch, token)

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's row; returns the store's clock in microseconds. Conditional, so that no clock decides which of
        two heartbeats is the later one."""
        client, counter = self._open, member.counter
        statement = "UPDATE {t} SET n = ?, v = ? WHERE p = ? AND k = ? IF n != ?"
        place = (client.partition(MEMBERS), member.incarnation)
        await client.write(statement, counter, member_value(member), *place, counter)
        return await self.now()

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's row; with `counter`, only while its heartbeat counter is still that one."""
        client = self._open
        place = (client.partition(MEMBERS), incarnation)
        if counter is None:
            await client.write("DELETE FROM {t} WHERE p = ? AND k = ? IF EXISTS", *place)
        else:
            await client.write("DELETE FROM {t} WHERE p = ? AND k = ? IF n = ?", *place, counter)

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failures at these places, some at a time."""
        client = self._open
        partition = client.shard(shard_id)
        for some in cut(places, _REMOVED_MAX):
            writes = [Write(_IN_ORDER, (partition,)), *_removed_failures(partition, some)]
            await self._turns.take(shard_id, partial(client.write_all, writes))

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many: all of them or, if one of them is gone, none."""
        client = self._open
        partition, first = client.shard(shard_id), run_key(uuid)
        runs = await client.read(_RUNS, partition, first, end_of(first))
        beyond = runs[: min(max(len(runs) - keep, 0), limit)]
        if not beyond:
            return 0
        deletes = [Write("DELETE FROM {t} WHERE p = ? AND k = ? IF EXISTS", (partition, key)) for (key,) in beyond]
        applied = await self._turns.take(shard_id, partial(client.write_all, deletes))
        return len(beyond) if applied[0] else 0

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failures, runs and finished rows of these uuids, some at a time."""
        client = self._open
        partition = client.shard(shard_id)
        for some in cut(list(dict.fromkeys(uuids)), _FORGOTTEN_MAX):
            for found in (_failures_and_runs, _finished):
                deletes = await client.in_parallel(partial(found, client, partition), some)
                for part in cut([write for each in deletes for write in each], _REMOVED_MAX):
                    writes = [Write(_IN_ORDER, (partition,)), *part]
                    await self._turns.take(shard_id, partial(client.write_all, writes))

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes nothing and returns 0: each row was written with its time to live."""
        return 0
