"""The store port in SQL, as far as it is the same for every database: ownership, members, and records.

An adapter runs these statements, and adds those whose form decides how fast timers are written and read: `apply`, pages of
timers, `fetch` and `list`.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar

from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.ports.store import (
    GENERATION_BYTES,
    GENERATION_END,
    KEY_MAX,
    PAGE_BYTES_MAX,
    Capabilities,
    Ends,
    FailurePlace,
    FailureRow,
    FireKey,
    HistoryRow,
    Loaded,
    Member,
    RunRow,
    ShardState,
    StoredRow,
    StoreFacts,
    schedules_of,
    shards_are_fixed,
    total_shards_changed,
)
from tocsin.sql.dialect import Dialect, Step, Value
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX, UUID_MIN
from tocsin.sql.rows import (
    FAILURE_COLUMNS,
    HISTORY_COLUMNS,
    LIVE,
    ROW_COLUMNS,
    RUN_COLUMNS,
    SUSPENDED,
    LoadQuery,
    cut,
    failure_row,
    history_row,
    run_row,
    text_row,
)

#: The runs of a timer that ended while it went on, newest first, between two generations; and the sizes of their records.
RUNS_OF_TIMER = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE shard_id = ? AND run_uuid = ? AND run_generation >= ? AND run_generation < ? "
    "ORDER BY run_generation DESC LIMIT ?"
)
RUN_SIZES = RUNS_OF_TIMER.replace(RUN_COLUMNS, "run_generation, octet_length(run_record)")
#: The generation of a run, by how many newer ones its timer has.
NEWEST_RUN = (
    "SELECT run_generation FROM runs WHERE shard_id = ? AND run_uuid = ? ORDER BY run_generation DESC LIMIT 1 OFFSET ?"
)


def ends_page(table: str, of: str, columns: str) -> str:
    """A shard's rows of a table of ends whose columns begin with `of`, behind a uuid and generation, in their order."""
    return (
        f"SELECT {columns} FROM {table} WHERE shard_id = ? AND {of}_uuid >= ? AND ({of}_uuid > ? OR {of}_generation > ?) "
        f"ORDER BY {of}_uuid, {of}_generation LIMIT ?"
    )


def failures_page(columns: str, *, descending: bool) -> str:
    """A shard's failures behind a place, or before one in the opposite order. Only the bound on the instant is one that every
    database reads an index by."""
    order, than = (" DESC", "<") if descending else ("", ">")
    return (
        f"SELECT {columns} FROM failures WHERE shard_id = ? AND failure_at {than}= ? AND (failure_at {than} ? OR "
        f"(failure_uuid, failure_generation) {than} (?, ?)) "
        f"ORDER BY failure_at{order}, failure_uuid{order}, failure_generation{order} LIMIT ?"
    )


FAILURES, FAILURES_DESCENDING = (failures_page(FAILURE_COLUMNS, descending=each) for each in (False, True))
#: Failures that one statement deletes: some databases try each of its conditions on each row.
_REMOVED_MAX = 100
#: Timers whose rows one transaction removes: a schedule may have thousands of occurrences.
_FORGOTTEN_MAX = 20
#: The tables with what is left of timers, in the order in which it is removed; how their columns begin, the index by uuid.
_LEFT_OF_TIMERS = (
    ("failures", "failure", "PRIMARY"),
    ("runs", "run", "PRIMARY"),
    ("history", "timer", "history_by_uuid"),
)
#: Sorts before every generation, or is that of a damaged row.
_GENERATION_FIRST = bytes(GENERATION_BYTES)
#: How the cursor of a page of ends begins, before a uuid and generation.
_HISTORY, _RUNS = b"h", b"r"
_TOTAL_SHARDS = "SELECT meta_value FROM meta WHERE meta_name = 'total_shards'"
_RECORD = "record_key, record_value, record_version FROM records"


class SqlStore(ABC):
    """A store whose adapter supplies how statements run. The port documents what each method guarantees."""

    capabilities: Capabilities
    dialect: ClassVar[Dialect]
    #: The number of shards of a new store.
    total_shards_default: ClassVar[int]
    #: The number of shards in force when the store was opened.
    _total_shards: int = 0

    # -- what an adapter supplies

    @abstractmethod
    async def _engine_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT of the engine, which never waits for a long list."""

    async def _lease_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT by which a node renews its lease, which waits for no other work of the engine either."""
        return await self._engine_rows(sql, *values)

    @abstractmethod
    async def _rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT."""

    @abstractmethod
    async def _change(self, *steps: Step) -> int:
        """Runs the statements in one transaction. Returns how many rows the last one found or changed; 0 also if a required
        one before found none."""

    async def _lease_change(self, *steps: Step) -> int:
        """The same for what a node writes to renew its lease, which waits for no other work of the engine."""
        return await self._change(*steps)

    @abstractmethod
    async def _page(self, query: LoadQuery) -> Loaded:
        """The rows, as `load` returns them."""

    # -- life cycle

    async def _fix_total_shards(self, wanted: int | None) -> int:
        """Fixes the number of shards and returns it. Until the first claim there is no data, and a node may change the
        number; a node that has read the former one must be started again. Of nodes that write the first number at the same
        time, one decides."""
        self._total_shards = await self._fixed_total_shards(wanted)
        return self._total_shards

    async def _fixed_total_shards(self, wanted: int | None) -> int:
        while True:
            stored = await self._rows(_TOTAL_SHARDS)
            if not stored:
                number = wanted or self.total_shards_default
                sql = f"INSERT INTO meta VALUES ('total_shards', ?){self.dialect.or_nothing}"
                await self._change(Step(sql, (number,)))
                continue
            fixed = int(stored[0][0])
            if wanted in (None, fixed):
                return fixed
            if await self._rows("SELECT 1 FROM timers LIMIT 1"):
                raise shards_are_fixed(fixed, wanted)
            # Checked again: a node may have claimed its first shard meanwhile. A statement of its own takes the lock, because
            # PostgreSQL would otherwise look for claims as of a moment before it waited for one.
            sql = (
                "UPDATE meta SET meta_value = ? WHERE meta_name = 'total_shards' AND NOT EXISTS (SELECT 1 FROM timers)"
            )
            await self._change(self._total_shards_are(fixed), Step(sql, (wanted,)))

    def _total_shards_are(self, number: int) -> Step:
        """Passes if this is the number of shards, which stays until the transaction ends."""
        return Step(f"{_TOTAL_SHARDS} AND meta_value = ?{self.dialect.locked}", (number,), required=True)

    async def facts(self) -> StoreFacts:
        """What the database reports about itself."""
        ((version, size_bytes, rows),) = await self._rows(self.dialect.facts)
        return StoreFacts(str(version), int(size_bytes), None if rows is None else int(rows))

    async def now(self) -> int:
        """The database's clock."""
        return int((await self._lease_rows(self.dialect.now))[0][0])

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return [ShardState(*row) for row in await self._engine_rows(self.dialect.shards)]

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. A claim
        waits for a batch of the shard that is still under way, whichever node sent it. Raises StoreUnavailable for the first
        claim of a shard if another node has changed the number of shards since this store was opened."""
        # Before any other row, like whoever changes the number.
        steps = [self._total_shards_are(self._total_shards)] if expected_epoch == 0 else []
        if presumed_dead is not None:
            # Locked, so that the counter can't move between the comparison and the commit.
            member = "SELECT 1 FROM members WHERE member_incarnation = ? AND member_counter = ?" + self.dialect.locked
            steps.append(Step(member, presumed_dead, required=True))
        if expected_epoch == 0:
            steps.append(Step(self.dialect.first_claim, (shard_id, owner)))
        else:
            sql = (
                f"UPDATE {self.dialect.timers} SET shard_version = shard_version + 1, shard_owner = ? "
                f"WHERE {self.dialect.shard_row} AND shard_version = ?"
            )
            steps.append(Step(sql, (owner, shard_id, expected_epoch)))
        if await self._change(*steps):
            return expected_epoch + 1
        if expected_epoch == 0 and int((await self._rows(_TOTAL_SHARDS))[0][0]) != self._total_shards:
            raise total_shards_changed("the database")
        return None

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._change(release(self.dialect, shard_id, epoch, owner)) > 0

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds, read after the row was written."""
        await self._lease_change(Step(heartbeat(self.dialect), member))
        return await self.now()

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        sql = "SELECT member_incarnation, member_node, member_address, member_counter FROM members"
        return [Member(*row) for row in await self._lease_rows(sql)]

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed since stays."""
        sql = "DELETE FROM members WHERE member_incarnation = ?"
        if counter is None:
            # Behind a heartbeat that is under way, which would otherwise bring the row back.
            await self._lease_change(Step(sql, (incarnation,)))
        else:
            await self._change(Step(f"{sql} AND member_counter = ?", (incarnation, counter)))

    # -- timers

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        return await self._page(LoadQuery(LIVE, shard_id, after, up_to, limit))

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        return await self._page(LoadQuery(SUSPENDED, shard_id, after, KEY_MAX, limit))

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The namespace's schedules behind an id, in the order of their ids' bytes, along an index of schedules alone."""
        sql = self.dialect.schedules.format(columns=ROW_COLUMNS)
        return [text_row(values) for values in await self._rows(sql, schedules_of(namespace), after_id, limit)]

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> builtins.list[StoredRow]:
        """All schedules behind a namespace and id, by the name under which they are stored and id, along the same index."""
        sql = self.dialect.all_schedules.format(columns=ROW_COLUMNS)
        place = ("", "") if after is None else (schedules_of(after[0]), after[1])
        return [text_row(values) for values in await self._rows(sql, *place, limit)]

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> builtins.list[HistoryRow | RunRow]:
        """The timer's history rows and run rows with generation < before, greatest generation first. Both tables are read
        along a key, first the sizes of records, and then the records that the page has room for. A run that ends in between
        is newer than all that were read."""
        below = GENERATION_END if before is None else before
        first = (shard_id, uuid, _GENERATION_FIRST, below, limit)
        ends = [*await self._rows(history_sizes(self.dialect), *first), *await self._rows(RUN_SIZES, *first)]
        sizes = sorted(((bytes(generation), int(size)) for generation, size in ends), reverse=True)[:limit]
        passed = zip(sizes, accumulate(size for _, size in sizes), strict=True)
        least = next((of for (of, _), size in passed if size >= bytes_max), _GENERATION_FIRST)
        wanted = (shard_id, uuid, least, below, limit)
        history = await self._rows(history_of_timer(self.dialect), *wanted)
        runs = await self._rows(RUNS_OF_TIMER, *wanted)
        found: builtins.list[HistoryRow | RunRow] = [*map(history_row, history), *map(run_row, runs)]
        return sorted(found, key=lambda row: row.generation, reverse=True)[:limit]

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of a shard's history rows, by uuid and generation, and then of its run rows, each along a key: first the
        sizes of records, and then the records that the page has room for."""
        cursor = cursor or _HISTORY
        kind, uuid, generation = cursor[:1], cursor[1:17] or UUID_MIN, cursor[17:]
        of, columns = ("timer", HISTORY_COLUMNS) if kind == _HISTORY else ("run", RUN_COLUMNS)
        table = self.dialect.history_of_timer if kind == _HISTORY else "runs"
        place = (shard_id, uuid, uuid, generation)
        sizes = await self._rows(ends_page(table, of, f"octet_length({of}_record)"), *place, limit)
        passed = accumulate(int(size) for (size,) in sizes)
        wanted = next((number for number, size in enumerate(passed, start=1) if size >= bytes_max), len(sizes))
        found = await self._rows(ends_page(table, of, columns), *place, wanted) if wanted else []
        rows: builtins.list[HistoryRow | RunRow] = [
            history_row(row) if of == "timer" else run_row(row) for row in found
        ]
        if not sizes:
            return Ends([], _RUNS if kind == _HISTORY else None)
        # Even if there were no more: rows that came between both reads have taken the room of as many at the end.
        return Ends(rows, kind + bytes(rows[-1].uuid) + bytes(rows[-1].generation) if rows else cursor)

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history, run and failure rows with expires_at ≤ now_us, longest expired first of each, and
        returns how many."""
        removed = await self._change(purge_history(self.dialect, now_us, limit))
        for purge in (purge_runs, purge_failures):
            if removed < limit:
                removed += await self._change(purge(self.dialect, now_us, limit - removed))
        return removed

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> builtins.list[FailureRow]:
        """A shard's failure rows behind a place, or in the opposite order before it."""
        first, last = (INSTANT_MIN, UUID_MIN, b""), (INSTANT_MAX, UUID_MAX, GENERATION_END)
        at, uuid, generation = after or (last if descending else first)
        return await self._failures((shard_id, at, at, uuid, generation, limit), descending=descending)

    async def _failures(self, values: tuple[Value, ...], *, descending: bool) -> builtins.list[FailureRow]:
        """The rows of `failures_page`."""
        return [failure_row(row) for row in await self._rows(FAILURES_DESCENDING if descending else FAILURES, *values)]

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failure rows at these places."""
        steps = remove_failures(self.dialect, shard_id, [place[1:] for place in places])
        if steps:
            await self._change(*steps)

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many. Rows written in between are newer than all that it removes."""
        oldest_kept = await self._rows(NEWEST_RUN, shard_id, uuid, keep - 1)
        if not oldest_kept:
            return 0
        return await self._change(trim_runs(self.dialect, shard_id, uuid, bytes(oldest_kept[0][0]), limit))

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failure, run and history rows of these uuids, those of a few in each transaction."""
        for some in cut(sorted(set(uuids)), _FORGOTTEN_MAX):
            await self._change(*forget(self.dialect, shard_id, some))

    # -- records. A kind's version is in the row of the kind without a key, which every write changes last.

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key."""
        found = await self._engine_rows(f"SELECT {_RECORD} WHERE record_kind = ? AND record_key = ?", kind, key)
        return Record(*found[0]) if found else None

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> builtins.list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last
        first. Walks the primary key."""
        condition = "record_kind = ? AND record_key > ? AND record_key < ?"
        order = "record_key DESC" if descending else "record_key"
        sql = f"SELECT {_RECORD} WHERE {condition} ORDER BY {order} LIMIT ?"
        return [Record(*row) for row in await self._engine_rows(sql, kind, after, before, limit)]

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`; with None, creates the record if there is none."""
        values: tuple[Value, ...] = (value, kind, key)
        sql = "INSERT INTO records (record_value, record_kind, record_key, record_version) VALUES (?, ?, ?, 1)"
        sql += self.dialect.or_nothing
        if expected is not None:
            values = (*values, expected)
            sql = (
                "UPDATE records SET record_value = ?, record_version = record_version + 1 "
                "WHERE record_kind = ? AND record_key = ? AND record_version = ?"
            )
        return await self._change_records(kind, sql, values)

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, all together; whether there was any."""
        sql = f"DELETE FROM records WHERE record_kind = ? AND record_key IN ({', '.join('?' * len(keys))})"
        return await self._change_records(kind, sql, (kind, *keys))

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """How many writes of each kind there were."""
        rows_of = self._lease_rows if urgent else self._engine_rows
        places = ", ".join("?" * len(kinds))
        sql = f"SELECT record_kind, record_version FROM records WHERE record_kind IN ({places}) AND record_key = ''"
        found = {kind: int(version) for kind, version in await rows_of(sql, *kinds)}
        return tuple(found.get(kind, 0) for kind in kinds)

    async def _change_records(self, kind: str, sql: str, values: tuple[Value, ...]) -> bool:
        change = Step(sql, values, required=True)
        return await self._change(change, Step(self.dialect.next_records_version, (kind,))) > 0


def heartbeat(dialect: Dialect) -> str:
    """Writes a member row."""
    update = dialect.or_update("member_incarnation", "member_node", "member_address", "member_counter")
    columns = "member_incarnation, member_node, member_address, member_counter"
    return f"INSERT INTO members ({columns}) VALUES (?, ?, ?, ?){update}"


def release(dialect: Dialect, shard_id: int, epoch: int, owner: bytes) -> Step:
    """Clears a shard's owner if epoch and owner are these."""
    sql = (
        f"UPDATE {dialect.timers} SET shard_owner = NULL WHERE {dialect.shard_row} "
        "AND shard_version = ? AND shard_owner = ?"
    )
    return Step(sql, (shard_id, epoch, owner))


def history_of_timer(dialect: Dialect) -> str:
    """The finished rows of a timer between two generations, newest first."""
    return (
        f"SELECT {HISTORY_COLUMNS} FROM {dialect.history_of_timer} WHERE shard_id = ? AND timer_uuid = ? "
        "AND timer_generation >= ? AND timer_generation < ? ORDER BY timer_generation DESC LIMIT ?"
    )


def history_sizes(dialect: Dialect) -> str:
    """Generation and size of the record of each of these rows."""
    return history_of_timer(dialect).replace(HISTORY_COLUMNS, "timer_generation, octet_length(timer_record)")


def purge_history(dialect: Dialect, now_us: int, limit: int) -> Step:
    """Deletes the rows that expired first."""
    key = "shard_id, timer_execute_at, timer_uuid, timer_generation"
    sql = dialect.delete_first("history", key, "timer_expires_at <= ?", "timer_expires_at")
    return Step(sql, (now_us, limit))


def purge_runs(dialect: Dialect, now_us: int, limit: int) -> Step:
    """Deletes the rows of runs that expired first."""
    key = "shard_id, run_uuid, run_generation"
    return Step(dialect.delete_first("runs", key, "run_expires_at <= ?", "run_expires_at"), (now_us, limit))


def purge_failures(dialect: Dialect, now_us: int, limit: int) -> Step:
    """Deletes the failures that expired first."""
    key = "shard_id, failure_uuid, failure_generation"
    sql = dialect.delete_first("failures", key, "failure_expires_at <= ?", "failure_expires_at")
    return Step(sql, (now_us, limit))


def remove_failures(dialect: Dialect, shard_id: int, identities: Sequence[tuple[bytes, bytes]]) -> list[Step]:
    """Deletes failures by uuid and generation."""
    steps = []
    for part in cut(sorted(identities), _REMOVED_MAX):
        # The uuids alone are what every database reads an index by.
        uuids = ", ".join("?" * len(part))
        pairs = " OR ".join(["(failure_uuid = ? AND failure_generation = ?)"] * len(part))
        sql = f"{dialect.delete_along('failures', 'PRIMARY')} WHERE shard_id = ? AND failure_uuid IN ({uuids}) AND ({pairs})"
        steps.append(Step(sql, (shard_id, *(uuid for uuid, _ in part), *(value for pair in part for value in pair))))
    return steps


def trim_runs(dialect: Dialect, shard_id: int, uuid: bytes, before: bytes, limit: int) -> Step:
    """Deletes a timer's oldest runs before a generation."""
    condition = "shard_id = ? AND run_uuid = ? AND run_generation < ?"
    sql = dialect.delete_first("runs", "shard_id, run_uuid, run_generation", condition, "run_generation")
    return Step(sql, (shard_id, uuid, before, limit))


def forget(dialect: Dialect, shard_id: int, uuids: Sequence[bytes]) -> list[Step]:
    """Deletes the rows of these uuids. One statement for each, with a bound that all generations keep: otherwise some
    databases read another index while their statistics are outdated."""
    return [
        Step(
            f"{dialect.delete_along(table, index)} WHERE shard_id = ? AND {of}_uuid = ? AND {of}_generation >= ?",
            (shard_id, uuid, _GENERATION_FIRST),
        )
        for table, of, index in _LEFT_OF_TIMERS
        for uuid in uuids
    ]
