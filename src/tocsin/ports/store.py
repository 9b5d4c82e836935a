"""The store port: fenced batches, loads that say how far they are complete, and nothing that needs a join or a scan.

`tocsin.stores.memory` is the specification in code; `tocsin.testing.store_conformance` is it in tests. Every method may
raise `DefiniteFailure` (certainly no effect), `StoreUnavailable` (the same, for everything one might send) or
`OutcomeUnknown` (writes only: it may or may not have taken effect, or still may later).
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Status

#: (execute_at in signed 64-bit microseconds, 16 unsigned bytes of uuid): the order in which a shard fires.
FireKey = tuple[int, bytes]

#: Sorts before every key, and after every key.
KEY_MIN: FireKey = (-(2**63), b"")
KEY_MAX: FireKey = (2**63 - 1, b"\xff" * 16)

GENERATION_BYTES = 32


def generation(epoch: int, incarnation: bytes, sequence: int) -> bytes:
    """(epoch, incarnation, sequence) as 32 bytes that sort in that order."""
    return epoch.to_bytes(8, "big") + incarnation + sequence.to_bytes(8, "big")


class StoredRow(NamedTuple):
    """A live timer as a store keeps it: at most one row per (shard, uuid).

    `execute_at` is the instant of the next attempt. `suspended` is None for a row that `load` returns, and the reason why
    it is set aside for one that only `load_suspended` returns. `record` is opaque to the store; the other fields repeat
    parts of it for keys and filters.
    """

    execute_at: int
    uuid: bytes
    generation: bytes
    namespace: str
    timer_id: str
    tags: tuple[str, ...]
    record: bytes
    suspended: str | None = None

    @property
    def key(self) -> FireKey:
        """The row's place in its shard's order."""
        return (self.execute_at, self.uuid)


class HistoryRow(NamedTuple):
    """A finished timer; identified by (uuid, generation), so that writing it twice leaves one.

    `execute_at` is the key's instant when it finished. `expires_at` is when retention ends.
    """

    execute_at: int
    uuid: bytes
    generation: bytes
    namespace: str
    timer_id: str
    tags: tuple[str, ...]
    record: bytes
    status: Status
    finished_at: int
    expires_at: int


@dataclass(slots=True)
class ShardBatch:
    """One shard's part of a commit: all of it or nothing, if the fence holds.

    The fence: the shard row's epoch and owner are these, tested *by updating it* as the first statement. Then, in any
    order, since the parts are disjoint: `upserts` (each replaces whatever row its uuid had, wherever it stood),
    `deletes` (by uuid), `delete_to` (every row that is not suspended with key ≤ it), `history` (idempotent). No uuid stands
    in both `upserts` and `deletes`, no upsert that isn't suspended lies at or below `delete_to`.

    A store whose transactions are too small cuts the batch into chunks, each fenced, upserts and history before deletes,
    all rows of one uuid together.
    """

    shard_id: int
    epoch: int
    owner: bytes
    upserts: list[StoredRow] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    delete_to: FireKey | None = None
    history: list[HistoryRow] = field(default_factory=list)


class Applied(Enum):
    """What became of one shard's part of an `apply` that did not raise."""

    DURABLE = "durable"
    OWNERSHIP_LOST = "ownership_lost"


class Loaded(NamedTuple):
    """A page: `rows` in key order, and the key up to which nothing is missing."""

    rows: list[StoredRow]
    complete_to: FireKey


class Found(NamedTuple):
    """What is stored of one uuid: its live row, and its most recent history row."""

    live: StoredRow | None
    finished: HistoryRow | None


class ShardState(NamedTuple):
    """A shard row: `owner` is None once released. A shard nobody ever claimed has epoch 0."""

    shard_id: int
    epoch: int
    owner: bytes | None


class Member(NamedTuple):
    """A node as the store knows it: `counter` grows with each heartbeat; `incarnation` is new at each process start."""

    incarnation: bytes
    node: str
    address: str
    counter: int


class SignIn(NamedTuple):
    """A sign-in to the web pages, made with the key `key_id`.

    `token_hash` is the hexadecimal SHA-256 of the token in the cookie, which itself is never stored. `seen_at` is the last
    use, to within a part of the idle time-out; from `expires_at` on the sign-in is over. Both are microseconds.
    """

    token_hash: str
    key_id: str
    seen_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries of the audit trail to read, newest first. `after` is inclusive, `before` exclusive, microseconds.
    `cursor` is the place of the last entry of the page before."""

    actions: frozenset[str] = frozenset()
    key_id: str | None = None
    subject: str | None = None
    after: int | None = None
    before: int | None = None
    cursor: tuple[int, bytes] | None = None
    limit: int = 100


#: Place in a list: (execute_at, uuid, generation). Live and finished rows share one order.
ListCursor = tuple[int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which rows of one namespace to list, in (execute_at, uuid, generation) order.

    `execute_after` is inclusive, `execute_before` exclusive. All of `tags` must be present. Suspended rows count as pending.
    """

    namespace: str
    shards: Sequence[int]
    statuses: frozenset[Status]
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    cursor: ListCursor | None = None
    limit: int = 100
    scan_rows_max: int = 50_000


class Listed(NamedTuple):
    """A page of a list. `cursor` continues behind it; None when nothing can follow. A page may be short, even empty,
    and still have a cursor: the store stopped after `scan_rows_max` rows that did not match."""

    rows: list[StoredRow | HistoryRow]
    cursor: ListCursor | None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """How a store may differ from the specification.

    `range_delete`: `delete_to` is honoured (otherwise the engine deletes by uuid only). `exclusive`: whoever has it open
    is the only node, so that claims need not wait for another's lease.
    """

    range_delete: bool = True
    exclusive: bool = False


class Store(Protocol):
    """A database of timers. Doesn't know how shards are computed."""

    capabilities: Capabilities

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates, and fixes the number of shards at first use; returns the number in force.

        Raises ConfigError when `total_shards` is given and data exists under another number; StoreLocked, SchemaTooNew,
        StoreCorrupted or StoreUnavailable when it can't be used.
        """

    async def close(self) -> None:
        """Finishes what runs and disconnects. Idempotent."""

    async def now(self) -> int:
        """The store's clock, microseconds. Whoever has the store exclusively may answer with the machine's clock."""

    # -- ownership

    async def shards(self) -> list[ShardState]:
        """Every shard that was ever claimed. A strong read."""

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Takes the shard: epoch becomes expected_epoch + 1 and owner `owner`; returns the new epoch.

        None when the epoch is another by now, or when `presumed_dead` = (incarnation, counter) is given and that
        member's heartbeat counter is no longer this (compared in the same transaction). A new shard has epoch 0.
        """

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these; the epoch stays."""

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock, microseconds."""

    async def members(self) -> list[Member]:
        """All member rows. A strong read."""

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row: at a graceful end, or when long dead, then only while its heartbeat counter is still
        `counter`: whoever has woken up in the meantime stays."""

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        """Writes the parts of several shards (each shard once); durable when it returns. The result is in order.

        A part whose fence fails leaves no trace and doesn't hinder the others. Raising DefiniteFailure means that no part
        had any effect.
        """

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to, at most `limit` of the smallest, from a snapshot begun
        after the call. `complete_to` is `up_to` only if no such row was left out."""

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, likewise; `complete_to` is KEY_MAX when nothing was left out."""

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored of each uuid; uuids of which nothing is stored are absent. A strong read."""

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows with expires_at ≤ now_us; returns how many. A store whose database expires
        rows by itself returns 0."""

    # -- administration

    async def namespaces(self) -> builtins.list[Namespace]:
        """All of them. A strong read."""

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """Inserts it (create); False when it exists already. Otherwise replaces the one whose version is one less, whole;
        False when there is none of that version: somebody else has changed it."""

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All of them."""

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts or replaces by key_id."""

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes it, and its sign-ins. False when there was none."""

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name which all who open this store share: the one it holds, or else `fresh`, which it holds
        from then on. Of many who ask at once all get the same."""

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Keeps it, and removes others: those with expires_at ≤ now_us, and of the same key all but the `keep` - 1 that were
        seen last. One with a token_hash that is kept already is replaced."""

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """Those of the given ones that are kept, also if they have expired, in any order. A strong read."""

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Moves its last use, never back; False when it isn't kept (any more)."""

    async def delete_sign_in(self, token_hash: str) -> bool:
        """False when there was none."""

    async def put_audit(self, entry: AuditEntry) -> None:
        """Keeps it. The same one again changes nothing."""

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries, by (at, entry_id), descending. A strong read."""

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, the oldest first; returns how many."""

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished."""
