"""What the parts of one node's engine share: ports, limits, namespaces, memory accounts."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from tocsin.administration import (
    CALENDARS,
    CREDENTIALS,
    DESTINATION_PAUSES,
    FLOWS,
    NAMESPACES,
    calendars,
    credentials,
    destination_pauses,
    flows,
    namespaces,
)
from tocsin.model.calendar import NO_CALENDARS, Calendar, Calendars
from tocsin.model.credential import Credential, CredentialCheck
from tocsin.model.destination import DestinationPause, destination_name
from tocsin.model.errors import (
    NamespaceDeleting,
    NamespaceNotFound,
    OutcomeUnknown,
    StoreError,
    StoreFull,
    TocsinError,
)
from tocsin.model.flow import Flow, FlowRules
from tocsin.model.hooks import Hooks
from tocsin.model.namespace import RETENTION_DEFAULT_US, DamagedNamespace, HistoryMode, Namespace
from tocsin.ports.clock import Clock, WakeUp
from tocsin.ports.credentials import CredentialGate, NoCredentials
from tocsin.ports.http import Caller
from tocsin.ports.observer import Event, NamespaceDamaged
from tocsin.ports.seals import NoSeals, Seals
from tocsin.ports.store import Store
from tocsin.timers.engine.alarm import LoopWakeUp
from tocsin.timers.engine.limits import BreakerOptions, EngineLimits
from tocsin.timers.engine.monitored import MonitorsRemembered
from tocsin.timers.engine.quota_accounts import QuotaAccount, open_account

if TYPE_CHECKING:
    from tocsin.timers.engine.rows import Row
    from tocsin.timers.engine.shard import Shard

T = TypeVar("T")
R = TypeVar("R", Flow, Calendar, Credential)

#: How long after its last refusal for want of space a store counts as full, unless it has committed a batch: a heartbeat's
#: few bytes may fit where a client's write does not.
STORE_FULL_LASTS_US = 10_000_000
#: The kinds of records that are read with the namespaces.
_RULES = (FLOWS, CALENDARS, CREDENTIALS, DESTINATION_PAUSES)
_NO_CREDENTIALS: Mapping[str, Credential] = MappingProxyType({})
#: Claims, loads, sweeps and releases at once on a node. More would queue for a store's connections, and delay what commits
#: and the supervision of shards read.
SHARD_CALLS_MAX = 8
#: Reads at once of the states that commits need, of all lanes: clients wait for them, and claims and loads use the same
#: connections of a store.
FETCHES_MAX = 2


@dataclass(slots=True)
class Context:
    """Ports, limits, and the namespaces as last read. Time, randomness and ids come only from here, so that tests replace
    them."""

    store: Store
    caller: Caller
    clock: Clock
    limits: EngineLimits
    observe: Callable[[Event], None]
    random: random.Random
    incarnation: bytes
    breaker: BreakerOptions = field(default_factory=BreakerOptions)
    #: Encrypts secrets where requests become timers, and opens them where they are used.
    seals: Seals = field(default_factory=NoSeals)
    #: Makes the wake-up at which due timers fire.
    wake_up: Callable[[Callable[[], None]], WakeUp] = LoopWakeUp
    #: Namespaces whose timers this process handles itself, each with the caller that is invoked instead of `caller`.
    internal: Mapping[str, Caller] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    #: The rules of flows by namespace. They are read along with the namespaces, and are as current as these.
    flows: dict[str, FlowRules] = field(default_factory=dict)
    #: The calendars by namespace, which are read along with the namespaces, too.
    calendars: dict[str, Calendars] = field(default_factory=dict)
    #: The credentials by namespace and name, which are read along with the namespaces, too; what to call when they may have
    #: changed; and what decides whether one can be sent now.
    credentials: dict[str, dict[str, Credential]] = field(default_factory=dict)
    credentials_changed: Callable[[], None] = field(default=lambda: None)
    credential_gate: CredentialGate = field(default_factory=NoCredentials)
    #: What has been used of quotas, by namespace; those without quotas have no account.
    quotas: dict[str, QuotaAccount] = field(default_factory=dict)
    #: The namespaces with a sink, and its subject's URL; and what to call with a shard whose events may have changed.
    sinks: dict[str, str] = field(default_factory=dict)
    events_changed: Callable[[Shard], None] = field(default=lambda shard: None)
    #: Has tokens of slow rates looked up whose home is the shard.
    tokens_wanted: Callable[[Shard], None] = field(default=lambda shard: None)
    #: Called when rules of flows, or namespaces, may have changed.
    rules_changed: Callable[[], None] = field(default=lambda: None)
    #: The names of the destinations that are paused, and what to call when these may have changed.
    paused_destinations: frozenset[str] = frozenset()
    pauses_changed: Callable[[], None] = field(default=lambda: None)
    #: Hash and number of shards of namespaces in use, which never change.
    arcs: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Called at heartbeats with the confirmed wall clock and boot time clock of one moment: this node's clock while it is
    #: near enough to the store's; before it ever was, the store's. For commits, and other users of a clock on this node;
    #: timers don't fire by it, they wait until the clock is right (rule 12).
    confirm_time: Callable[[int, int], None] = field(default=lambda now_us, boot_us: None)
    #: The clock that `confirm_time` confirms. None: `clock`.
    confirmed: Clock | None = None
    #: The earlier of this node's and the store's clock at the last heartbeat: what has passed by both has passed.
    passed_us: int = 0
    #: Gets the duration in microseconds of a small read that is made all the time.
    note_read: Callable[[int], None] = field(default=lambda duration_us: None)
    #: What the node's windows hold, all shards together: timers before they are due, and bytes of their records; likewise
    #: those whose results are awaited in a commit (`Window.awaited`), as of each shard's last commit or load.
    window_timers: int = 0
    window_bytes: int = 0
    awaited: int = 0
    awaited_bytes: int = 0
    #: The end of the node lease, in boot time; and the wall clock when the last heartbeat was sent that succeeded.
    lease_until: int = 0
    beat_at_us: int = 0
    #: Whether this node has written a monitor, and what it remembers of them.
    monitors_seen: bool = False
    monitors_remembered: MonitorsRemembered = field(default_factory=MonitorsRemembered)
    #: The shards that the node owns, and what to call when the store took nothing from one instant to another, though no
    #: shard was lost.
    owned: Callable[[], Iterable[Shard]] = tuple
    outage: Callable[[int, int], None] = field(default=lambda from_us, until_us: None)
    #: Has the schedule read that the monitor of a due, deferred row watches.
    look: Callable[[Shard, Row], None] = field(default=lambda shard, row: None)
    #: How far the wall clock was set forward on purpose, in microseconds.
    moved_us: int = 0
    #: How many shards the node owns (at least 1), for each one's fair share of memory.
    shards_owned: int = 1
    #: Schedules, by shard and uuid, that may have more records of occurrences than are kept.
    outgrown: dict[tuple[int, bytes], None] = field(default_factory=dict)
    # The last refusal for want of space: why, and its boot time. None once a batch was committed.
    _full: tuple[str, int] | None = None
    #: The turns of reads of states that commits need.
    fetching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FETCHES_MAX))
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SHARD_CALLS_MAX))
    #: Boot time at which the latest successful read of the namespaces began: all of them are known at least as of then.
    #: None: never read.
    namespaces_as_of: int | None = None
    # The version of the records that `namespaces` is from, at least.
    _namespaces_version: int | None = None
    # Reads and changes of namespaces, numbered in the order in which they began, and the number that each name is known from.
    _learned: int = 0
    _learned_from: dict[str, int] = field(default_factory=dict)
    # Of each kind of records that is read along with the namespaces: the version that is known, and the number of its read.
    _records_from: dict[str, tuple[int, int]] = field(default_factory=dict)
    # The calendars by the keys and values of their records.
    _calendars_read: dict[tuple[str, int], Calendar] = field(default_factory=dict)
    # Shared reads: the lock of the one that reads, how many have begun, the number of the last that ended, and how it failed.
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _begun: int = 0
    _ended: int = 0
    _failure: StoreError | None = None

    def flow_time_us(self) -> int:
        """The time by which the limits of flows count: boot time, and by how much the wall clock was set forward on purpose.
        So rates go by the clock by which timers fall due, but by no wall clock that is set wrong."""
        return self.clock.boottime_us() + self.moved_us

    def planning_us(self) -> int:
        """The wall clock by which commits plan. Writes are accepted while this node's clock is wrong, too: then it is what
        heartbeats have confirmed."""
        return (self.confirmed or self.clock).now_us()

    @property
    def store_full(self) -> str | None:
        """Why the store takes no writes for want of space; None if it takes them, as far as this node knows."""
        if self._full is None or self.clock.boottime_us() - self._full[1] >= STORE_FULL_LASTS_US:
            return None
        return self._full[0]

    def note_write(self, error: Exception | None) -> None:
        """Notes that a batch was committed (None), or that a batch or a heartbeat failed."""
        if error is None:
            self._full = None
        elif isinstance(error, StoreFull):
            self._full = (str(error), self.clock.boottime_us())

    def caller_of(self, namespace: str) -> Caller:
        """What calls the timers of the namespace."""
        return self.internal.get(namespace, self.caller)

    def destination_of(self, namespace: str, url: str) -> str:
        """The name of the destination to which the namespace's timers with this URL go."""
        return destination_name(self.caller_of(namespace).destination(url))

    @property
    def share_timers(self) -> int:
        """How many timers one shard's window may hold, at least 1."""
        return max(self.limits.window_timers_max // self.shards_owned, 1)

    @property
    def share_bytes(self) -> int:
        """How many bytes of records one shard's window may hold, at least 1."""
        return max(self.limits.window_bytes_max // self.shards_owned, 1)

    def lanes(self, total_shards: int) -> int:
        """How many commits may be in progress at once: `lanes`, or one per shard where each shard's batch is a transaction of
        its own, so that no shard waits for another."""
        return self.limits.lanes if self.store.capabilities.shards_together else total_shards

    @property
    def batch_rows_max(self) -> int:
        """Rows of one batch, by the limit and by what the store takes in one transaction."""
        return min(self.limits.batch_rows_max, self.store.capabilities.batch_rows_max or self.limits.batch_rows_max)

    @property
    def batch_bytes_max(self) -> int:
        """Bytes of one batch's records, likewise."""
        return min(self.limits.batch_bytes_max, self.store.capabilities.batch_bytes_max or self.limits.batch_bytes_max)

    @property
    def fetch_uuids_max(self) -> int:
        """Of how many timers one commit may read what is stored, each with a live row and a finished one of the largest size
        that the settings allow."""
        row_bytes = self.limits.payload_bytes_max + self.limits.row_reserve_bytes
        return max(self.limits.fetch_bytes_max // (2 * row_bytes), 1)

    @property
    def row_bytes_max(self) -> int:
        """Bytes of a record that the store can hold."""
        return self.store.capabilities.row_bytes_max or sys.maxsize

    @property
    def namespaces_until(self) -> int:
        """The boot time until which this node may fire by the namespaces that it has read (rule 23)."""
        return 0 if self.namespaces_as_of is None else self.namespaces_as_of + self.limits.namespaces_lease_us

    async def read_namespaces(self) -> list[Namespace]:
        """Reads all namespaces from the store, unless none has changed since they were last read, and returns them; raises
        what the store raises.

        A namespace that this node has changed, removed, or read again, since this read began stays as it is known: this
        read's result may be older. One that is no longer stored is forgotten.
        """
        self._learned += 1
        number, begun_at = self._learned, self.clock.boottime_us()
        version, *others = await self.bounded(self.store.records_versions(NAMESPACES, *_RULES, urgent=True))
        versions = dict(zip(_RULES, others, strict=True))
        self.note_read(self.clock.boottime_us() - begun_at)
        # A damaged one may be restored by hand, which changes no version.
        unchanged = version == self._namespaces_version and not any(
            isinstance(each, DamagedNamespace) for each in self.namespaces.values()
        )
        if not unchanged:
            self._take_over(await self.bounded(namespaces(self.store)), number)
        store, bounded, observe = self.store, self.bounded, self.observe

        async def read(kind: str, reader: Callable[[], Awaitable[T]], take: Callable[[T], None]) -> bool:
            return await self._read(kind, versions[kind], number, reader, take)

        if await read(FLOWS, lambda: bounded(flows(store, observe)), self._take_flows) or not unchanged:
            self.rules_changed()
        # Each of its reads is bounded.
        read_calendars = partial(calendars, store, self._calendars_read, bounded, observe)
        await read(CALENDARS, read_calendars, self._take_calendars)
        await read(CREDENTIALS, lambda: bounded(credentials(store, observe)), self._take_credentials)
        await read(DESTINATION_PAUSES, lambda: bounded(destination_pauses(store)), self._take_pauses)
        if number == self._learned:
            # Otherwise some are known from a read or a change that began later, which may have seen an earlier version.
            self._namespaces_version = version
        self.namespaces_as_of = max(begun_at, self.namespaces_as_of or begun_at)
        return list(self.namespaces.values())

    async def _read(
        self, kind: str, version: int, number: int, read: Callable[[], Awaitable[T]], take: Callable[[T], None]
    ) -> bool:
        """Reads the records of a kind, in the read of namespaces of that number, unless none has changed; whether they were
        taken over. They are not if a read that began later was faster."""
        if version == self._records_from.get(kind, (0, 0))[0]:
            return False
        found = await read()
        if number < self._records_from.get(kind, (0, 0))[1]:
            return False
        self._records_from[kind] = version, number
        take(found)
        return True

    def _take_flows(self, stored: list[Flow]) -> None:
        self.flows = {name: FlowRules(each) for name, each in _by_namespace(stored).items()}

    def _take_calendars(self, read: dict[tuple[str, int], Calendar]) -> None:
        """A namespace none of whose calendars has changed keeps what was reckoned of them."""
        self._calendars_read = read
        self.calendars = {
            name: known if (known := self.calendars_of(name)).all() == each else Calendars(each)
            for name, each in _by_namespace(read.values()).items()
        }

    def calendars_of(self, namespace: str) -> Calendars:
        """The calendars of a namespace, as this node knows them."""
        return self.calendars.get(namespace, NO_CALENDARS)

    def _take_credentials(self, stored: list[Credential]) -> None:
        by_namespace = _by_namespace(stored).items()
        self.credentials = {name: {each.name: each for each in some} for name, some in by_namespace}
        self.credentials_changed()

    def credential(self, namespace: str, name: str) -> Credential | None:
        """The credential, as this node knows it."""
        return self.credentials.get(namespace, _NO_CREDENTIALS).get(name)

    @property
    def credential_check(self) -> CredentialCheck:
        """Which credentials go with which URLs, as this node knows it."""
        return CredentialCheck(self.credential, self.caller.destination)

    def _take_pauses(self, stored: list[DestinationPause]) -> None:
        self.paused_destinations = frozenset(each.name for each in stored)
        self.pauses_changed()

    def _take_over(self, stored: list[Namespace], number: int) -> None:
        """Takes over what the read of that number has returned, as far as it isn't known better."""
        for namespace in stored:
            if self._is_later(namespace.name, number):
                if isinstance(namespace, DamagedNamespace) and self.namespaces.get(namespace.name) != namespace:
                    self.observe(NamespaceDamaged(namespace.name, namespace.reason))
                self._learn(namespace, number)
        for name in self.namespaces.keys() - {namespace.name for namespace in stored}:
            if self._is_later(name, number):
                self._forget(name, number)

    def _is_later(self, name: str, number: int) -> bool:
        """Whether the read or change of that number began after the one that the namespace is known from."""
        return self._learned_from.get(name, 0) < number

    def _learn(self, namespace: Namespace, number: int) -> None:
        known = self.namespaces.get(namespace.name)
        other = known is not None and known.num_shards != namespace.num_shards
        if other or isinstance(namespace, DamagedNamespace):
            # Unknown now, or that of another namespace, which was deleted.
            self.arcs.pop(namespace.name, None)
        self._learned_from[namespace.name] = number
        self.namespaces[namespace.name] = namespace
        if namespace.event_sink is not None:
            self.sinks[namespace.name] = namespace.event_sink
        else:
            self.sinks.pop(namespace.name, None)
        open_account(self.quotas, namespace)

    def _forget(self, name: str, number: int) -> None:
        self._learned_from[name] = number
        self.namespaces.pop(name, None)
        self.arcs.pop(name, None)
        self.quotas.pop(name, None)
        self.sinks.pop(name, None)

    async def refresh_namespaces(self) -> None:
        """Returns after a read of the namespaces that began after the call. Concurrent callers share one read. Raises what
        the store raises."""
        asked = self._begun
        async with self._reading:
            if self._ended > asked:
                if self._failure is not None:
                    raise self._failure
                return
            self._begun += 1
            self._failure = None
            try:
                await self.read_namespaces()
            except StoreError as error:
                self._failure = error
            # A cancelled read does not get here: it has answered nobody.
            self._ended = self._begun
            if self._failure is not None:
                raise self._failure

    def knows_namespace(self, name: str, version: int) -> bool:
        """Whether this node knows the namespace in that version or a later one."""
        known = self.namespaces.get(name)
        return known is not None and known.version >= version

    def changed_namespace(self, namespace: Namespace) -> None:
        """Takes over a namespace that this node has just written."""
        # The first version is that of a new namespace, whatever is known of a former one with its name.
        if namespace.version == 1 or not self.knows_namespace(namespace.name, namespace.version + 1):
            self._learned += 1
            self._learn(namespace, self._learned)
            self.rules_changed()

    def removed_namespace(self, name: str) -> None:
        """Forgets a namespace whose record this node has just removed."""
        self._learned += 1
        self._forget(name, self._learned)

    async def in_turn(self, call: Awaitable[T]) -> T:
        """Like `bounded`, for calls that all shards of a node may make at once: only `SHARD_CALLS_MAX` run at a time, so that
        what commits read, and reads of ownership, never queue behind hundreds of claims."""
        async with self._turns:
            return await self.bounded(call)

    async def bounded(self, call: Awaitable[T]) -> T:
        """The store call's result. Raises OutcomeUnknown once it has taken longer than `store_timeout`."""
        try:
            # Not wait_for: it loses a cancellation that coincides with the call's end, and costs a task.
            async with asyncio.timeout(self.limits.store_timeout_us / 1e6):
                return await call
        except TimeoutError:
            raise OutcomeUnknown(
                f"the store did not answer within {self.limits.store_timeout_us / 1e6:g} s (store_timeout)"
            ) from None

    def history_rule(self, namespace: str) -> tuple[HistoryMode, int]:
        """Whether and how long finished timers of the namespace stay visible. While it is deleted, each end is kept: what is
        left of a timer is found by its history."""
        known = self.namespaces.get(namespace)
        if known is None:
            return HistoryMode.ALL, RETENTION_DEFAULT_US
        return HistoryMode.ALL if known.deleting else known.history, known.retention_us

    def refusal(self, namespace: str) -> TocsinError | None:
        """Why nothing can be created or changed in the namespace; None if it can."""
        known = self.namespaces.get(namespace)
        if known is None:
            return NamespaceNotFound(f"there is no namespace {namespace!r}; create it first with namespaces/create")
        return None if known.deleting is None else being_deleted(known)

    def hooks_of(self, namespace: str) -> Hooks | None:
        """The hooks of the namespace."""
        known = self.namespaces.get(namespace)
        return None if known is None else known.hooks


def _by_namespace(found: Iterable[R]) -> dict[str, list[R]]:
    by_namespace: dict[str, list[R]] = {}
    for each in found:
        by_namespace.setdefault(each.namespace, []).append(each)
    return by_namespace


def being_deleted(namespace: Namespace) -> NamespaceDeleting:
    """The refusal of a write in a namespace that is being deleted."""
    return NamespaceDeleting(
        f"job {namespace.deleting} deletes the namespace {namespace.name!r}; wait for its end and create the namespace "
        "again, or cancel the job"
    )
