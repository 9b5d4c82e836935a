"""The store port: fenced batches, loads that state how far they are complete, and nothing that needs a join or a scan.

`tocsin.stores.memory` is the specification in code, `tocsin.testing.store_conformance` the one in tests. Every method may
raise `DefiniteFailure` (the call certainly had no effect), `StoreUnavailable` (the same, and other calls would fail as well)
or `OutcomeUnknown` (writes only: the call may have taken effect, or may still take effect later).
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from tocsin.model.errors import ConfigError, DefiniteFailure, SchemaTooNew, StoreCorrupted, StoreUnavailable
from tocsin.model.timer import Status
from tocsin.ports.records import Records

#: (execute_at in signed 64-bit microseconds, 16 unsigned bytes of uuid): the order in which a shard fires.
FireKey = tuple[int, bytes]

#: Sorts before every key, and after every key.
KEY_MIN: FireKey = (-(2**63), b"")
KEY_MAX: FireKey = (2**63 - 1, b"\xff" * 16)

UUID_BYTES = 16
GENERATION_BYTES = 32
#: Stands for the generation of a damaged row that has lost it.
GENERATION_LOST = bytes(GENERATION_BYTES)
#: Sorts after every generation.
GENERATION_END = b"\xff" * GENERATION_BYTES


def generation(epoch: int, incarnation: bytes, sequence: int) -> bytes:
    """A row's generation: (epoch, incarnation, sequence) as 32 bytes that sort in that order."""
    return epoch.to_bytes(8, "big") + incarnation + sequence.to_bytes(8, "big")


#: The ends of the names under which a namespace's schedules, its monitors, and the notifications about all of these are
#: stored. No namespace has a name with a slash, and lists of timers have no rows with one.
SCHEDULES_SUFFIX = "/schedule"
MONITORS_SUFFIX = "/monitor"
NOTIFICATIONS_SUFFIX = "/notify"


#: The same for what its sink is to get. These rows are suspended ones whose instants lie behind those of all timers, and
#: before the log of a transfer: they order a shard's events by epoch and number.
EVENTS_SUFFIX = "/event"
_EVENTS_FIRST_US, _EVENT_NUMBERS = 2**61, 2**38
#: Before all events of a shard, and after them.
EVENTS_START: FireKey = (_EVENTS_FIRST_US - 1, b"\xff" * UUID_BYTES)
EVENTS_END: FireKey = (2 * _EVENTS_FIRST_US - 1, b"\xff" * UUID_BYTES)
#: After all instants of timers.
TIMERS_END_US = _EVENTS_FIRST_US


def event_instant(epoch: int, number: int) -> int:
    """The instant of the key of an event, by the owner's epoch and its number in that."""
    return _EVENTS_FIRST_US + epoch * _EVENT_NUMBERS + number


#: The same for tokens of slow rates. These are history rows in the shards of the rules' homes, which are not those of the
#: namespace: `tocsin.model.ids.flow_uuid` begins with what determines them.
FLOWS_SUFFIX = "/flow"


def schedules_of(namespace: str) -> str:
    """The name under which a namespace's schedules are stored."""
    return namespace + SCHEDULES_SUFFIX


def names_of(namespace: str) -> tuple[str, str, str, str]:
    """All names under which rows of a namespace are stored in its shards."""
    return namespace, schedules_of(namespace), namespace + MONITORS_SUFFIX, namespace + NOTIFICATIONS_SUFFIX


class StoredRow(NamedTuple):
    """A live timer as a store keeps it: at most one row per (shard, uuid).

    `execute_at` is the instant of the next attempt. `suspended` is None for a row that `load` returns; for a suspended row,
    which only `load_suspended` returns, it is the reason. `record` is opaque to the store; the other fields repeat parts of
    it for keys and filters.

    What is stored may be damaged, by hand or by a restore in part. A damaged row is returned like any other, so that it keeps
    no other from being read (rule 15): with its uuid and, where the store keeps it apart, its instant; with `damaged_record`
    as its record; and with what is left of the other fields, else empty ones, an instant of 0 and a generation of zeros. A
    list may omit it. So it is with history rows, whose lost status is `failed`, and with run rows."""

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
        """The row's position in its shard's order."""
        return (self.execute_at, self.uuid)


class HistoryRow(NamedTuple):
    """A finished timer, identified by (uuid, generation), so that writing it twice leaves one row.

    `execute_at` is the key's instant when the timer finished. `expires_at` is when retention ends. Both in microseconds.
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


class RunRow(NamedTuple):
    """A run that ended while its timer went on, identified by (uuid, generation), so that writing it twice leaves one row.

    `generation` is unlike those of the timer's other runs and of its history rows, and greater than those of earlier ones.
    `record` is opaque to the store. `expires_at` is when retention ends, in microseconds.
    """

    uuid: bytes
    generation: bytes
    record: bytes
    expires_at: int


#: A position among a shard's failures: (failed_at, uuid, generation).
FailurePlace = tuple[int, bytes, bytes]


class FailureRow(NamedTuple):
    """An end that failed and that nobody has dealt with: of a timer, or of an occurrence of a schedule. It is identified by
    (uuid, generation), those of its history row or run row, which has the details. Writing it twice leaves one row.

    `namespace` is the name under which the live row was stored. `failure` is what failures of a group have in common
    (`tocsin.model.failure`). `execute_at` is the instant of the run that failed, `expires_at` when retention ends, both in
    microseconds, like `failed_at`. A damaged row is listed at its place with what is left of its fields, else empty ones.
    """

    uuid: bytes
    generation: bytes
    namespace: str
    timer_id: str
    failure: str
    failed_at: int
    execute_at: int
    expires_at: int

    @classmethod
    def damaged(cls, place: FailurePlace) -> FailureRow:
        """What is left of the row at this place."""
        failed_at, uuid, generation = place
        return cls(uuid, generation, "", "", "", failed_at, 0, 0)

    @property
    def place(self) -> FailurePlace:
        """The row's position among those of its shard."""
        return (self.failed_at, self.uuid, self.generation)


def check_lengths(row: StoredRow | HistoryRow | RunRow | FailureRow) -> None:
    """Raises DefiniteFailure unless uuid and generation have their lengths: some databases would pad shorter ones, and others
    would sort them elsewhere."""
    if len(row.uuid) != UUID_BYTES or len(row.generation) != GENERATION_BYTES:
        raise DefiniteFailure(f"{row.uuid.hex()}: a uuid has {UUID_BYTES} bytes and a generation {GENERATION_BYTES}")


@dataclass(slots=True)
class ShardBatch:
    """One shard's part of a commit, which takes effect as a whole or not at all, and only if its fence holds.

    The fence is the first statement: it *updates* the shard row where epoch and owner are these. The others follow in any
    order, because they are disjoint: `upserts` (each replaces the uuid's present row, whatever its key), `deletes` (by uuid),
    `delete_to` (the delete watermark: every row with key ≤ it that is not suspended), `history`, `runs` and `failures`
    (idempotent), `resolved` (the (uuid, generation) of failure rows to remove, of which some may not exist). No uuid is in
    both `upserts` and `deletes`, no upsert that is not suspended lies at or below `delete_to`, and no failure is written and
    resolved.

    A store whose transactions are too small splits the batch into chunks, each with the fence, upserts, history, runs and
    failures before deletes, all rows of one uuid in one chunk, except that resolved failures for which it has no room may
    follow. `together` names uuids whose rows, or deletes, belong to another uuid's chunk: those of a notification or an event
    to its subject's, those of lost events to their gap's.
    """

    shard_id: int
    epoch: int
    owner: bytes
    upserts: list[StoredRow] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    delete_to: FireKey | None = None
    history: list[HistoryRow] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)
    failures: list[FailureRow] = field(default_factory=list)
    resolved: list[tuple[bytes, bytes]] = field(default_factory=list)
    together: dict[bytes, bytes] = field(default_factory=dict)


class Applied(Enum):
    """The outcome of one shard's part of an `apply` that did not raise."""

    DURABLE = "durable"
    OWNERSHIP_LOST = "ownership_lost"


class Loaded(NamedTuple):
    """A page: `rows` in key order, and the key up to which no row is missing."""

    rows: list[StoredRow]
    complete_to: FireKey


class Found(NamedTuple):
    """What is stored of one uuid: its live row, and its most recent history row."""

    live: StoredRow | None
    finished: HistoryRow | None


class ShardState(NamedTuple):
    """A shard row. `owner` is None after a release. A shard that was never claimed has epoch 0."""

    shard_id: int
    epoch: int
    owner: bytes | None


class Member(NamedTuple):
    """A node's row: `counter` grows with each heartbeat; `incarnation` is new at each start of the process. A damaged row has
    its incarnation and what is left of the other fields, else empty ones, so that it looks like a dead node's."""

    incarnation: bytes
    node: str
    address: str
    counter: int


R = TypeVar("R", bound=StoredRow | HistoryRow | RunRow)

#: Bytes of records on one page of `list` or `runs`, unless the caller asks for another number.
PAGE_BYTES_MAX = 4 * 1024 * 1024


def within(bytes_max: int, rows: Sequence[R]) -> Sequence[R]:
    """The first rows, up to the one with which their records have this many bytes: at least one row, if there is one."""
    for number, row in enumerate(rows, start=1):
        bytes_max -= len(row.record)
        if bytes_max <= 0:
            return rows[:number]
    return rows


class Ends(NamedTuple):
    """A page of a shard's ends. The next page begins behind `cursor`; None when nothing can follow."""

    rows: list[HistoryRow | RunRow]
    cursor: bytes | None


#: Rows that don't match that one `list` reads, unless the caller asks for another number.
SCAN_ROWS_MAX = 50_000

#: A position in a list: (execute_at, uuid, generation). Live and finished rows share one order.
ListCursor = tuple[int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which rows to list, in (execute_at, uuid, generation) order, or in the opposite one if `descending`: timers of these
    `namespaces`, or of all (None), without what is stored under a name with a slash.

    `execute_after` is inclusive, `execute_before` exclusive, in microseconds. A row must have all of `tags`. Suspended rows
    count as pending. The store reads at most `scan_rows_max` rows that don't match. A page ends with the row with which its
    records have `bytes_max` bytes, at the latest.
    """

    namespaces: tuple[str, ...] | None
    shards: Sequence[int]
    statuses: frozenset[Status]
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    cursor: ListCursor | None = None
    limit: int = 100
    scan_rows_max: int = SCAN_ROWS_MAX
    bytes_max: int = PAGE_BYTES_MAX
    descending: bool = False

    def covers(self, namespace: str) -> bool:
        """Whether the list has the timers that are stored under this name."""
        return "/" not in namespace if self.namespaces is None else namespace in self.namespaces


class Listed(NamedTuple):
    """A page of a list. The next page begins after `cursor`; None when nothing can follow. A page may be short, even empty,
    and still have a cursor: the store stopped after `scan_rows_max` rows that did not match, or its records have enough
    bytes."""

    rows: list[StoredRow | HistoryRow]
    cursor: ListCursor | None


def shards_are_fixed(fixed: int, wanted: int | None) -> ConfigError:
    """The error for another number of shards than the store's data has."""
    return ConfigError(
        f"shards: the store's data has {fixed} shards, which can't be changed to {wanted}; leave the setting out, or set it "
        f"to {fixed}"
    )


def total_shards_changed(place: str) -> StoreUnavailable:
    """The error for the first claim by a node that has read a number of shards that another node has changed since. `place`
    names the data."""
    return StoreUnavailable(f"{place} has another number of shards by now; start again")


#: The format of stored data until the first release: schema, layout and records. Each change of these raises the number, as
#: does one of which node should own which shard, on which all nodes must agree. Data with another one is refused. Migrations
#: begin with the first release, which fixes it.
FORMAT = 15


def refuse_other_format(place: str, found: int | None) -> None:
    """Raises StoreCorrupted for data that a version before the first release has stored in another format; None: it stored no
    number. `place` names the data."""
    if found != FORMAT:
        raise StoreCorrupted(
            f"{place} has data of a version of Tocsin before its first release, which this one can't read (format "
            f"{'unknown' if found is None else found}, not {FORMAT}); use an empty one, or the version that made it"
        )


def refuse_newer_schema(place: str, version: int, newest: int, readable_from: int | None) -> None:
    """Raises SchemaTooNew if a release whose newest schema version is `newest` can't use one of this version. Whoever
    migrates a schema stores with it the oldest version whose release still can, as `readable_from`; None: it did not."""
    if version <= newest or (readable_from is not None and readable_from <= newest):
        return
    least = "" if readable_from is None else f", which requires a release that knows version {readable_from}"
    raise SchemaTooNew(
        f"{place} has schema version {version}{least}; this release supports versions up to {newest}; run the newer "
        "release, or restore a backup"
    )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """How a store may differ from the specification.

    `range_delete`: the store supports `delete_to`; otherwise the engine deletes by uuid only. `delete_watermark`: the engine
    passes `delete_to` all the same, besides the deletes of all that it covers, so that the store can drop what it keeps by
    key; it has no other effect. `expires_history`: the database expires history, run and failure rows by itself, some time
    after `expires_at`, and `purge_history` returns 0. `exclusive`: only one node can have the store open, so claims need not
    wait for another node's lease. `shards_together`: the parts of one `apply` are one transaction; otherwise the engine
    applies each shard's batch by itself, so that no shard fails with another.
    `batch_rows_max`, `batch_bytes_max`: how many timers and bytes of records fit in one transaction, None for no limit; the
    engine keeps its batches within them. `row_bytes_max`: how large a record may be, None for no limit: a live row and a
    history row with such records and with the longest names, tags and reason fit in the store, also together in one batch.
    """

    range_delete: bool = True
    delete_watermark: bool = False
    expires_history: bool = False
    exclusive: bool = False
    shards_together: bool = True
    batch_rows_max: int | None = None
    batch_bytes_max: int | None = None
    row_bytes_max: int | None = None


class StoreFacts(NamedTuple):
    """What a database reports about itself; None: it reports nothing of this kind. `rows` are those of pending timers,
    perhaps estimated; `connections` those that this node may have, `connections_used` those that work now."""

    version: str | None = None
    size_bytes: int | None = None
    rows: int | None = None
    wal_bytes: int | None = None
    connections: int | None = None
    connections_used: int | None = None


class Store(Records, Protocol):
    """A database of timers, and of records. It does not know how a timer's shard is computed."""

    capabilities: Capabilities

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force.

        Raises ConfigError when `total_shards` is given and data exists under another number; StoreLocked, SchemaTooNew,
        StoreCorrupted or StoreUnavailable when the store can't be used.
        """

    async def close(self) -> None:
        """Waits for calls under way and disconnects. Idempotent."""

    async def now(self) -> int:
        """The store's clock in microseconds. An exclusive store may return the machine's clock."""

    async def facts(self) -> StoreFacts:
        """What the database reports about itself for a person who looks: nothing that takes long to find out."""

    # -- ownership

    async def shards(self) -> list[ShardState]:
        """Every shard that was ever claimed. A strongly consistent read."""

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch.

        Returns None when the epoch has changed, or when `presumed_dead` = (incarnation, counter) is given and that member's
        heartbeat counter is no longer this one, compared after the call and before the claim takes effect. A heartbeat in
        between is permitted: a member that resumes claims its shards again. A new shard has epoch 0.

        An epoch is returned only if this call has raised it, and when no batch of an earlier epoch can change what is read
        any more. None and any error may mean that the claim stands all the same: the caller then claims again.
        """

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were. The epoch stays. Takes effect
        behind a batch of the shard that this object is applying."""

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""

    async def members(self) -> list[Member]:
        """All member rows. A strongly consistent read."""

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed since stays."""

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. The results are in order.

        A part whose fence fails has no effect and does not affect the others. A part takes effect at most once, however late:
        a second time it might undo a later one. DefiniteFailure means that no part had any effect.
        """

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from reads that
        began after the call. `complete_to` is `up_to` only if no such row was left out, except rows that were written
        meanwhile (rule 9)."""

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones. `complete_to` is KEY_MAX when none was left out."""

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent. A strongly consistent read."""

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The live rows stored under `schedules_of(namespace)`, suspended ones included, in the order of their ids' UTF-8
        bytes: the first `limit` behind `after_id`. All of them are in these shards."""

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> builtins.list[StoredRow]:
        """The live schedules of all namespaces in these shards, which are all shards: at least the first `limit` behind
        `after` (namespace and id; None: from the start), or all that follow. Those of a namespace are in the order of their
        ids; how namespaces are ordered is up to the store, but it does not change."""

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> builtins.list[HistoryRow | RunRow]:
        """The ends of a timer's runs: its history rows and run rows with generation < before (None: all of them), greatest
        generation first. At most `limit`, and none behind the row with which their records have `bytes_max` bytes; perhaps
        fewer, but at least one if there is any. A strongly consistent read."""

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of everything that has ended in a shard, history rows and run rows of all names, behind a page's cursor
        (None: from the start). The order is the store's own. At most `limit` rows, and none behind the row with which their
        records have `bytes_max` bytes; perhaps none, although others follow. Each row that is there from the first page to
        the last is on exactly one page; rows past their retention may be missing."""

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows, run rows and failure rows with expires_at ≤ now_us and returns how many. A
        store whose database expires rows by itself returns 0."""

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> builtins.list[FailureRow]:
        """A shard's failure rows behind a place in their order (None: from the start), or in the opposite order before it
        (None: from the end). At most `limit`; fewer only if no others follow. Rows past their retention may be missing."""

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failure rows at these places, of which some may not exist. No fence is needed: a row that is removed is
        not written again. What is interrupted may have removed some."""

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` (at least 1) are left or `limit` are
        removed; returns how many. History rows neither count nor are removed."""

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failure rows, run rows and history rows of these uuids, of which some may have none; live rows stay. No
        fence is needed: what is written of a uuid afterwards stays. What is interrupted may have removed some, of a uuid the
        history rows last, because it is by them that a list finds it again."""

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished."""
