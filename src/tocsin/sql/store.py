"""The store port in SQL, as far as it is the same for every database: ownership, members, and administrative records.

An adapter runs these statements, and adds those whose form decides how fast timers are written and read: `apply`, pages of
timers, `fetch` and `list`.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.model.errors import DefiniteFailure
from tocsin.model.namespace import Namespace, decode_namespace, encode_namespace
from tocsin.ports.store import (
    GENERATION_END,
    KEY_MAX,
    AuditQuery,
    Capabilities,
    FireKey,
    HistoryRow,
    Loaded,
    Member,
    RunRow,
    ShardState,
    SignIn,
    StoredRow,
    schedules_of,
    shards_are_fixed,
)
from tocsin.sql.dialect import Dialect, Step, Value
from tocsin.sql.rows import (
    HISTORY_COLUMNS,
    LIVE,
    ROW_COLUMNS,
    RUN_COLUMNS,
    SUSPENDED,
    LoadQuery,
    cut,
    history_row,
    run_row,
    text_row,
)

T = TypeVar("T")

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)

#: The runs of a timer that ended while it went on, newest first.
RUNS_OF_TIMER = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE shard_id = ? AND run_uuid = ? AND run_generation < ? "
    "ORDER BY run_generation DESC LIMIT ?"
)
#: The generation of a run, by how many newer ones its timer has.
NEWEST_RUN = (
    "SELECT run_generation FROM runs WHERE shard_id = ? AND run_uuid = ? ORDER BY run_generation DESC LIMIT 1 OFFSET ?"
)

#: The LIMIT that means all rows.
_ROWS_ALL = 2**63 - 1


class SqlStore(ABC):
    """A store whose adapter supplies how statements run. The port documents what each method guarantees."""

    capabilities: Capabilities
    dialect: ClassVar[Dialect]
    #: The number of shards of a new store.
    total_shards_default: ClassVar[int]

    # -- what an adapter supplies

    @abstractmethod
    async def _engine_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT of the engine, which never waits for a long list."""

    @abstractmethod
    async def _rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT."""

    @abstractmethod
    async def _change(self, *steps: Step) -> int:
        """Runs the statements in one transaction. Returns how many rows the last one found or changed; 0 also if a required
        one before found none."""

    @abstractmethod
    async def _page(self, query: LoadQuery) -> Loaded:
        """The rows, as `load` returns them."""

    # -- life cycle

    async def _fix_total_shards(self, wanted: int | None) -> int:
        """Fixes the number of shards and returns it. Until the first claim there is no data, and a node may change the
        number; a node that has read the former one must be started again. Of nodes that write the first number at the same
        time, one decides."""
        while True:
            stored = await self._rows("SELECT meta_value FROM meta WHERE meta_name = 'total_shards'")
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
            # Checked again in the statement: a node may have claimed its first shard meanwhile.
            sql = (
                "UPDATE meta SET meta_value = ? WHERE meta_name = 'total_shards' AND meta_value = ? "
                "AND NOT EXISTS (SELECT 1 FROM timers)"
            )
            await self._change(Step(sql, (wanted, fixed)))

    async def now(self) -> int:
        """The database's clock."""
        return int((await self._engine_rows(self.dialect.now))[0][0])

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return [ShardState(*row) for row in await self._engine_rows(self.dialect.shards)]

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. A claim
        waits for a batch of the shard that is still under way, whichever node sent it."""
        steps = []
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
        return expected_epoch + 1 if await self._change(*steps) else None

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._change(release(self.dialect, shard_id, epoch, owner)) > 0

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds, read after the row was written."""
        update = self.dialect.or_update("member_incarnation", "member_node", "member_address", "member_counter")
        columns = "member_incarnation, member_node, member_address, member_counter"
        await self._change(Step(f"INSERT INTO members ({columns}) VALUES (?, ?, ?, ?){update}", member))
        return await self.now()

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        sql = "SELECT member_incarnation, member_node, member_address, member_counter FROM members"
        return [Member(*row) for row in await self._engine_rows(sql)]

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed since stays."""
        sql = "DELETE FROM members WHERE member_incarnation = ?"
        if counter is None:
            await self._change(Step(sql, (incarnation,)))
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

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int
    ) -> builtins.list[HistoryRow | RunRow]:
        """The timer's history rows and run rows with generation < before, greatest generation first. Both tables are read
        along a key; a run that ends in between is newer than all that were read."""
        below = GENERATION_END if before is None else before
        history = await self._rows(history_of_timer(self.dialect), shard_id, uuid, below, limit)
        runs = await self._rows(RUNS_OF_TIMER, shard_id, uuid, below, limit)
        found: builtins.list[HistoryRow | RunRow] = [*map(history_row, history), *map(run_row, runs)]
        return sorted(found, key=lambda row: row.generation, reverse=True)[:limit]

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows and run rows with expires_at ≤ now_us, longest expired first, and returns how
        many."""
        removed = await self._change(purge_history(self.dialect, now_us, limit))
        if removed < limit:
            removed += await self._change(purge_runs(self.dialect, now_us, limit - removed))
        return removed

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many. Rows written in between are newer than all that it removes."""
        oldest_kept = await self._rows(NEWEST_RUN, shard_id, uuid, keep - 1)
        if not oldest_kept:
            return 0
        return await self._change(trim_runs(self.dialect, shard_id, uuid, bytes(oldest_kept[0][0]), limit))

    # -- administration

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces, by name."""
        sql = "SELECT namespace_name, namespace_record FROM namespaces ORDER BY namespace_name"
        return [decode_namespace(name, record.encode()) for name, record in await self._engine_rows(sql)]

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        record = encode_namespace(namespace).decode()
        if create:
            sql = f"INSERT INTO namespaces (namespace_record, namespace_name) VALUES (?, ?){self.dialect.or_nothing}"
            return await self._change(Step(sql, (record, namespace.name))) > 0
        sql = (
            "UPDATE namespaces SET namespace_record = ? WHERE namespace_name = ? "
            f"AND {self.dialect.namespace_version} = ?"
        )
        return await self._change(Step(sql, (record, namespace.name, namespace.version - 1))) > 0

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys, by key_id."""
        rows = await self._rows("SELECT key_record FROM api_keys ORDER BY key_id")
        return _decoded(_key_decoder.decode, rows)

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        sql = f"INSERT INTO api_keys (key_id, key_record) VALUES (?, ?){self.dialect.or_update('key_id', 'key_record')}"
        await self._change(Step(sql, (key.key_id, _key_encoder.encode(key).decode())))

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        sign_ins = Step("DELETE FROM sign_ins WHERE sign_in_key_id = ?", (key_id,))
        return await self._change(sign_ins, Step("DELETE FROM api_keys WHERE key_id = ?", (key_id,))) > 0

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""
        await self._change(Step(f"INSERT INTO secrets VALUES (?, ?){self.dialect.or_nothing}", (name, fresh)))
        return str((await self._rows("SELECT secret_value FROM secrets WHERE secret_name = ?", name))[0][0])

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        expired = self.dialect.delete_first(
            "sign_ins", "sign_in_token_hash", "sign_in_expires_at <= ?", "sign_in_expires_at"
        )
        update = self.dialect.or_update("sign_in_token_hash", "sign_in_key_id", "sign_in_seen_at", "sign_in_expires_at")
        # A DELETE in MySQL can't read its own table directly, hence the derived table.
        beyond = (
            "DELETE FROM sign_ins WHERE sign_in_token_hash IN (SELECT sign_in_token_hash FROM (SELECT sign_in_token_hash "
            "FROM sign_ins WHERE sign_in_key_id = ? AND sign_in_token_hash <> ? "
            f"ORDER BY sign_in_seen_at DESC, sign_in_token_hash DESC LIMIT ? OFFSET ?{self.dialect.skip_locked}) AS beyond)"
        )
        await self._change(
            Step(expired, (now_us, _ROWS_ALL)),
            Step(f"INSERT INTO sign_ins VALUES (?, ?, ?, ?){update}", sign_in),
            Step(beyond, (sign_in.key_id, sign_in.token_hash, _ROWS_ALL, keep - 1)),
        )

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        found: builtins.list[SignIn] = []
        for hashes in cut(token_hashes):
            sql = f"SELECT * FROM sign_ins WHERE sign_in_token_hash IN ({_places(hashes)})"
            found += [SignIn(*row) for row in await self._rows(sql, *hashes)]
        return found

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        sql = (
            "UPDATE sign_ins SET sign_in_seen_at = CASE WHEN sign_in_seen_at < ? THEN ? ELSE sign_in_seen_at END "
            "WHERE sign_in_token_hash = ?"
        )
        return await self._change(Step(sql, (seen_at, seen_at, token_hash))) > 0

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        return await self._change(Step("DELETE FROM sign_ins WHERE sign_in_token_hash = ?", (token_hash,))) > 0

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        values = (entry.at, entry.entry_id, entry.action, entry.key_id, entry.subject, encode_audit(entry))
        await self._change(Step(f"INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?){self.dialect.or_nothing}", values))

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending. Walks the primary key backwards."""
        conditions, values = _audit_conditions(query)
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        sql = f"SELECT audit_record FROM audit {where}ORDER BY audit_at DESC, audit_id DESC LIMIT ?"
        return _decoded(decode_audit, await self._rows(sql, *values, query.limit))

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        sql = self.dialect.delete_first("audit", "audit_at, audit_id", "audit_at < ?", "audit_at, audit_id")
        return await self._change(Step(sql, (before_us, limit)))


def release(dialect: Dialect, shard_id: int, epoch: int, owner: bytes) -> Step:
    """Clears a shard's owner if epoch and owner are these."""
    sql = (
        f"UPDATE {dialect.timers} SET shard_owner = NULL WHERE {dialect.shard_row} "
        "AND shard_version = ? AND shard_owner = ?"
    )
    return Step(sql, (shard_id, epoch, owner))


def history_of_timer(dialect: Dialect) -> str:
    """The finished rows of a timer, newest first."""
    return (
        f"SELECT {HISTORY_COLUMNS} FROM {dialect.history_of_timer} "
        "WHERE shard_id = ? AND timer_uuid = ? AND timer_generation < ? ORDER BY timer_generation DESC LIMIT ?"
    )


def purge_history(dialect: Dialect, now_us: int, limit: int) -> Step:
    """Deletes the rows that expired first."""
    key = "shard_id, timer_execute_at, timer_uuid, timer_generation"
    sql = dialect.delete_first("history", key, "timer_expires_at <= ?", "timer_expires_at")
    return Step(sql, (now_us, limit))


def purge_runs(dialect: Dialect, now_us: int, limit: int) -> Step:
    """Deletes the rows of runs that expired first."""
    key = "shard_id, run_uuid, run_generation"
    return Step(dialect.delete_first("runs", key, "run_expires_at <= ?", "run_expires_at"), (now_us, limit))


def trim_runs(dialect: Dialect, shard_id: int, uuid: bytes, before: bytes, limit: int) -> Step:
    """Deletes a timer's oldest runs before a generation."""
    condition = "shard_id = ? AND run_uuid = ? AND run_generation < ?"
    sql = dialect.delete_first("runs", "shard_id, run_uuid, run_generation", condition, "run_generation")
    return Step(sql, (shard_id, uuid, before, limit))


def _decoded(decode: Callable[[bytes], T], rows: Sequence[Sequence[Any]]) -> list[T]:
    """The records in a result of one column. Raises DefiniteFailure for one that can't be read."""
    try:
        return [decode(record.encode()) for (record,) in rows]
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DefiniteFailure(f"a stored record can't be read: {error}") from error


def _places(values: Sequence[Value]) -> str:
    return ", ".join("?" * len(values))


def _audit_conditions(query: AuditQuery) -> tuple[list[str], list[Value]]:
    conditions: list[str] = []
    values: list[Value] = []
    actions = sorted(query.actions)
    # A row comparison instead of the last one would not use the index in MySQL.
    for condition, given in (
        (f"audit_action IN ({_places(actions)})", actions),
        ("audit_key_id = ?", () if query.key_id is None else (query.key_id,)),
        ("audit_subject = ?", () if query.subject is None else (query.subject,)),
        ("audit_at >= ?", () if query.after is None else (query.after,)),
        ("audit_at < ?", () if query.before is None else (query.before,)),
        (
            "audit_at <= ? AND (audit_at < ? OR audit_id < ?)",
            () if query.cursor is None else (query.cursor[0], *query.cursor),
        ),
    ):
        if given:
            conditions.append(condition)
            values += given
    return conditions, values
