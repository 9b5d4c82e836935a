"""The ports between nodes: forwarding writes to the owners of their shards, ownership, and other nodes' reports.

A write is done by the owner of its shard. It has one of three outcomes: an answer (the write is durable, or certainly is not,
with the error); ShardMoved (certainly nothing was written: send it to the present owner); or another Unavailable (unknown:
the write may have been done, and will not be done any more)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple, Protocol

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.job import RowFilter
from tocsin.model.monitor import MonitorChange
from tocsin.model.schedule import ScheduleChange
from tocsin.model.timer import Changes, Timer
from tocsin.ports.completion import Completion
from tocsin.ports.destinations import DestinationPeers, DestinationQuestion, DestinationReport
from tocsin.ports.flows import FlowPeers, LocalFlows
from tocsin.ports.quotas import QuotaUse

#: Why a timer is suspended whose address the settings of its shard's owner forbid.
REFUSED = "egress"
#: Why a timer is suspended one of whose secrets the owner of its shard can't decrypt.
UNOPENED = "secret"
#: How the reason begins for which a timer is suspended whose credential can't be sent.
_CREDENTIAL = "credential:"


def credential_reason(namespace: str, name: str, destination: str) -> str:
    """Why a timer is suspended whose credential can't be sent to its destination."""
    return f"{_CREDENTIAL}{namespace}/{name}@{destination}"


def credential_of(reason: str) -> tuple[str, str, str] | None:
    """Namespace and name of the credential, and the destination, of such a reason; None of any other."""
    if not reason.startswith(_CREDENTIAL):
        return None
    where, _, destination = reason.removeprefix(_CREDENTIAL).partition("@")
    namespace, _, name = where.partition("/")
    return namespace, name, destination


class RowPlace(StrEnum):
    """Where the timer's row is, as the owner sees it. `store`: not in memory, because it is beyond the horizon, suspended, or
    about to be loaded. `window`: in memory. `in_flight`: an attempt is under way. `writing`: the result of an attempt, or a
    client's write, is about to become durable."""

    STORE = "store"
    WINDOW = "window"
    IN_FLIGHT = "in_flight"
    WRITING = "writing"


class Obstacle(StrEnum):
    """Why the owner would not begin an attempt now if the timer were due. `dispatch`: it fires nothing. `hand_over`: it hands
    the shard over. `destination`: as many requests as allowed are in flight to it. `unsent`: a request to it could not be
    sent just now. `breaker`: nearly all of its attempts have failed, and another is not yet tried. `paused_destination`: an
    operator has paused it. `node`, `namespace`: all slots of the node, or the namespace's share of them, are in use. `flow`:
    its flow, or its namespace, is at a limit; `paused_flow`: its flow is paused."""

    NONE = ""
    DISPATCH = "dispatch"
    HAND_OVER = "hand_over"
    DESTINATION = "destination"
    UNSENT = "unsent"
    BREAKER = "breaker"
    PAUSED_DESTINATION = "paused_destination"
    NODE = "node"
    NAMESPACE = "namespace"
    FLOW = "flow"
    PAUSED_FLOW = "paused_flow"


class Whereabouts(msgspec.Struct, frozen=True, array_like=True):
    """The timer in the owner's memory. `name` is the destination of an obstacle, or the reason why dispatch is paused. The
    attempt in flight has the number `attempt`, began at `since` and times out at `until` (microseconds, by its clock).

    Nodes of different releases exchange it: new fields are only added at the end, with a default, and unknown words of
    `place` and `obstacle` are possible.
    """

    place: str
    obstacle: str = Obstacle.NONE
    name: str = ""
    attempt: int = 0
    until: int = 0
    since: int = 0


#: Timers of one node, each as its shard and uuid.
Located = Sequence[tuple[int, bytes]]


class WriteKind(IntEnum):
    """The kinds of writes. The numbers are part of the protocol between nodes, in which 5 is a conditional create."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    CONCLUDE = 4
    SCHEDULE = 6
    REPLAY = 7


class Write(NamedTuple):
    """A client's write, or the result of an attempt that a former owner had in flight when it handed the shard over.

    CREATE has `timer`, and `condition` if it is conditional. UPDATE has `changes`. CONCLUDE has `timer`, and `execute_at`
    while the timer is pending; it applies to the row with the identity `expected`. REPLAY has `changes`, and applies to the
    finished run of the generation `expected`, if there is one. SCHEDULE has the `change` of a schedule or monitor, with
    `timer` or `changes` where that needs them; DELETE may have one as its condition. UPDATE, DELETE and SCHEDULE of a job
    apply only to what matches `only_if` then. The write must not begin at or after `deadline_us` (this node's boot time).
    `namespace_version` is the version of its namespace that the sending node knows; 0: unknown."""

    kind: WriteKind
    shard_id: int
    uuid: bytes
    namespace: str
    timer: Timer | None
    changes: Changes | None
    deadline_us: int
    namespace_version: int = 0
    execute_at: int = 0
    expected: bytes = b""
    condition: Condition | None = None
    change: ScheduleChange | MonitorChange | None = None
    only_if: RowFilter | None = None


class Written(NamedTuple):
    """The durable timer, and the instant of its next attempt, or of its last one if it has finished. `outcome` indicates
    whether a create has written it or found it."""

    timer: Timer
    next_attempt_at: int
    outcome: Outcome = Outcome.CREATED


#: Gets what was written; None after a delete.
WriteCompletion = Completion[Written | None]


class Forwarder(Protocol):
    """Forwards writes to the owners of their shards."""

    def forward(self, write: Write, completion: WriteCompletion) -> None:
        """Sends the write to the shard's owner, or to the next one before the deadline."""


class Owner(NamedTuple):
    """A shard's owner, as far as this node knows. `address` is empty when the owner takes no requests."""

    incarnation: bytes
    epoch: int
    address: str


class Placement(Protocol):
    """What this node knows of ownership. It may be out of date: a node refuses writes for shards that it does not own."""

    @property
    def incarnation(self) -> bytes:
        """This node's incarnation."""

    def owner(self, shard_id: int) -> Owner | None:
        """The shard's owner, this node included; None while none is known."""

    def refresh(self) -> None:
        """Requests another read of the ownership soon; watchers are notified after it."""

    def watch(self, refreshed: Callable[[], None]) -> None:
        """Has `refreshed` called after each read of the ownership, and after each change on this node."""

    def address(self, incarnation: bytes) -> str:
        """The address at which the member takes requests of other nodes; empty if it takes none or is unknown."""

    def name(self, incarnation: bytes) -> str:
        """The member's name, which its next start has, too; empty if it is unknown."""

    def secret_marks(self, incarnation: bytes) -> Collection[str]:
        """The marks of the secrets by which the member knows other nodes; empty if it announces none."""

    def others(self) -> Mapping[bytes, str]:
        """The addresses of the other living members that have one, by incarnation."""

    def all_others(self) -> set[bytes] | None:
        """All other members that have an address, also those that are presumed dead; None: the members were not read yet."""


class FlowCounts(msgspec.Struct, frozen=True, array_like=True):
    """What a node has of the flows of one rule: attempts in flight, and what waits, due timers in its memory and service
    calls. Further timers may wait in the store.

    Nodes of different releases exchange it: new fields are only added at the end, with a default.
    """

    in_flight: int
    waiting: int


class LocalWrites(Protocol):
    """The shards of this node, for writes of other nodes."""

    def accept(self, write: Write, epoch: int | None, completion: WriteCompletion) -> None:
        """Takes a write for a shard that this node owns, in this epoch if one is given. Raises ShardMoved, RequestExpired,
        Overloaded."""

    def locate(self, timers: Located) -> list[Whereabouts | None]:
        """What this node knows of each of the timers in its memory; None if it does not own the shard."""

    def knows_namespace(self, name: str, version: int) -> bool:
        """Whether this node knows the namespace in that version or a later one. If not, read the namespaces before accepting
        a write in it."""

    async def refresh_namespaces(self) -> None:
        """Reads the namespaces, by a read that begins after the call. Raises Unavailable."""

    def flow_counts(self, namespace: str) -> dict[str, FlowCounts]:
        """What this node has of the namespace's flows, by the match of their rule; without rules of which it has nothing."""

    def destination_reports(self, question: DestinationQuestion) -> list[DestinationReport]:
        """What this node knows of destinations."""

    @property
    def flows(self) -> LocalFlows:
        """What other nodes exchange with this one about flows."""


class ShardReport(msgspec.Struct, frozen=True, array_like=True):
    """A shard's window at its owner. `lag_us` is how long its oldest due timer has waited.

    Nodes of different releases exchange it: new fields are only added at the end, with a default.
    """

    shard_id: int
    epoch: int
    window_timers: int
    in_flight: int
    complete_to: int | None
    lag_us: int


class NodeVitals(msgspec.Struct, frozen=True, array_like=True):
    """A process's vital data: seconds since its start; processor cores in use, memory (None: unknown), the event loop's
    greatest lateness and the store's latencies within the last minute (None: nothing was measured); what is open now.

    Nodes of different releases exchange it: new fields are only added at the end, with a default.
    """

    uptime_s: int
    cpu_cores: float
    memory_bytes: int | None
    loop_lag_ms: float
    read_p50_ms: float | None
    read_p99_ms: float | None
    commit_p50_ms: float | None
    commit_p99_ms: float | None
    in_flight: int
    callback_connections: int
    client_connections: int
    #: The store's latest error, and when it was reported, in microseconds by the node's clock; 0: none was.
    store_error: str = ""
    store_error_at: int = 0


class NodeReport(msgspec.Struct, frozen=True, array_like=True):
    """A node's report about itself. `release` is its version. `dispatch_paused_reason`: a code of `PAUSE_TEXTS`.
    `largest_shard_bytes`: what the database reported; None if it reports no sizes. `paused_since_us`: since when it fires
    nothing, by its clock; None while it fires. `quotas`: what it has of namespaces with quotas. `agent`: whether it runs the
    service agent now; `agent_configured`: whether it may take it over."""

    release: str
    dispatching: bool
    dispatch_paused_reason: str | None
    agent: bool
    shards: list[ShardReport]
    largest_shard_bytes: int | None = None
    paused_since_us: int | None = None
    vitals: NodeVitals | None = None
    quotas: dict[str, QuotaUse] = {}
    agent_configured: bool = False


class Peers(FlowPeers, DestinationPeers, Protocol):
    """The other nodes, as far as they can be reached."""

    async def reports(self) -> Mapping[bytes, NodeReport]:
        """The nodes' reports, by incarnation; a node that does not answer in time is absent."""

    async def locate(self, incarnation: bytes, timers: Located, timeout_us: int) -> list[Whereabouts | None]:
        """What the node knows of each of the timers in its memory; None if it does not own the shard. Raises Unavailable,
        also if the answer does not come in time."""

    async def flow_counts(self, namespace: str) -> Mapping[bytes, Mapping[str, FlowCounts]]:
        """What the nodes have of the namespace's flows, by incarnation and by the match of their rule; a node that does not
        answer in time is absent."""

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        """Asks the nodes (addresses by incarnation) to read the namespaces again. Returns those that confirmed it in time."""
