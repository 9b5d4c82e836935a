"""Writes that belong to another node: what the use cases ask of whoever reaches the others, and what that needs to know.

A write is done by the owner of its shard. Its outcome is one of three, and the difference is the contract: an answer (the
write is durable, or certainly isn't and why), ShardMoved (certainly nothing was written: ask whoever owns the shard now),
or another Unavailable (nobody knows; it may have been done, but will not be any more).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import TocsinError
from tocsin.model.timer import Changes, Timer


class WriteKind(IntEnum):
    """What is wanted. The numbers are part of the protocol between nodes."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    CONCLUDE = 4


class Write(NamedTuple):
    """A client's write: CREATE brings `timer`, and a `condition` if it has one; UPDATE `changes`. Or a former owner's, of an
    attempt that it had made when it handed the shard over: CONCLUDE brings `timer` and, while that is pending,
    `execute_at`, for the generation `expected`. From `deadline_us` (this node's boot time) on, nothing may be begun for it
    any more. `namespace_version` is that of its namespace where the client was answered; 0: not told."""

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


class Written(NamedTuple):
    """The timer as it is durable now, and the instant of its next attempt, or of its last one if it has finished.
    `outcome` says whether a create has made it so, or found it."""

    timer: Timer
    next_attempt_at: int
    outcome: Outcome = Outcome.CREATED


#: Takes the answer, once: what was written, None after a delete, or the error. Must not raise.
Settle = Callable[[Written | TocsinError | None], None]


class Forwarder(Protocol):
    """Brings writes to the owners of their shards."""

    def forward(self, write: Write, settle: Settle) -> None:
        """Has the write done by whoever owns its shard, or comes to own it before the deadline. Raises Overloaded."""


class Owner(NamedTuple):
    """Who owns a shard, as far as this node knows. `address` is empty when it can't be reached."""

    incarnation: bytes
    epoch: int
    address: str


class Placement(Protocol):
    """What this node knows of ownership. It may be out of date: owners refuse what isn't theirs."""

    @property
    def incarnation(self) -> bytes:
        """This node's."""

    def owner(self, shard_id: int) -> Owner | None:
        """The owner, this node included; None while nobody is known to own it."""

    def refresh(self) -> None:
        """Has ownership read again soon; watchers hear when that is done."""

    def watch(self, refreshed: Callable[[], None]) -> None:
        """Has `refreshed` called whenever ownership was read, or has changed here."""

    def address(self, incarnation: bytes) -> str:
        """Where the member takes messages of other nodes; empty when it takes none or is not known."""

    def others(self) -> Mapping[bytes, str]:
        """The addresses of the other living members that have one."""


class LocalWrites(Protocol):
    """The shards of this node, as another node's write sees them."""

    def accept(self, write: Write, epoch: int | None, settle: Settle) -> None:
        """Takes a write for a shard that this node owns, in this epoch if one is named. Raises ShardMoved, Overloaded."""

    def knows_namespace(self, name: str, version: int) -> bool:
        """Whether this node knows the namespace in that version or a later one. Otherwise the namespaces have to be read
        before a write of it is taken."""

    async def refresh_namespaces(self) -> None:
        """Reads the namespaces, by a reading begun after the call. Unavailable."""


class ShardReport(msgspec.Struct, frozen=True, array_like=True):
    """A shard's window where it is owned. `lag_us`: how long its oldest due timer has been waiting.

    Nodes of two releases tell one another: fields are only added, at the end, with a default."""

    shard_id: int
    epoch: int
    window_timers: int
    in_flight: int
    complete_to: int | None
    lag_us: int


class NodeReport(msgspec.Struct, frozen=True, array_like=True):
    """What a node tells of itself. `release` is the version of its program. `takes_key_hashes`: requests may be brought to it
    with the hash of an API key instead of the key. It grows as ShardReport does."""

    release: str
    dispatching: bool
    dispatch_paused_reason: str | None
    agent: bool
    shards: list[ShardReport]
    takes_key_hashes: bool = False


class StatisticsReport(msgspec.Struct, frozen=True, array_like=True):
    """What a node has counted, point by point. `points` are those that have ended, oldest first, `present` is the one that
    goes on, each as `tocsin.ui.statistics` packs it; `since_us` is when the counting began, `width_us` what a point spans.
    `more`: further points have ended. It grows as NodeReport does."""

    since_us: int
    width_us: int
    points: list[bytes]
    present: bytes
    more: bool


class Peers(Protocol):
    """The other nodes, as far as they can be asked."""

    async def reports(self) -> Mapping[bytes, NodeReport]:
        """What each says of itself, by incarnation; who does not answer in time is absent."""

    async def statistics(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
        """What that node says of itself, and has counted in points that began after an instant: as many as it tells at once.
        None: its release doesn't tell. Unavailable, within the time that reports may take."""

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        """Has the nodes (addresses by incarnation) read the namespaces anew. Which of them have, of those that answered in
        time; a node of an earlier release never does."""
