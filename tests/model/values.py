"""What the parts of the model have in common. A tick is 125 ms; instants and intervals are in ticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

NODE_LEASE = 24
MEMBER_TIMEOUT = 40
HEARTBEAT_INTERVAL = 8
LOOK_AHEAD = 30
#: How far a node's clock may be from the database's.
SKEW_MAX = 4

UUIDS = 4
#: Instant and uuid: the order in which timers fire.
Key = tuple[int, int]
KEY_MIN: Key = (-1_000_000, -1)
KEY_MAX: Key = (1_000_000, UUIDS)
#: Epoch, incarnation and sequence number of the write that made a row.
Generation = tuple[int, int, int]


#: Epoch and number of an event: the order of the shard's commits.
EventKey = tuple[int, int]
EVENT_MAX: EventKey = (1_000_000, 0)


class Event(NamedTuple):
    """What the sink gets of an end."""

    key: EventKey
    spec: int


class Row(NamedTuple):
    """A timer's durable row. `spec` identifies the client's write that it stems from; retries keep it."""

    key: Key
    generation: Generation
    spec: int


class Outcome(Enum):
    """What becomes of a write, as its sender learns it."""

    DURABLE = "durable"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Kind(Enum):
    """What a write does. The retry is the engine's own; clients create, replace, delete, and replay what has finished."""

    UPSERT = "upsert"
    DELETE = "delete"
    REPLAY = "replay"
    RETRY = "retry"


@dataclass(eq=False)
class Write:
    """A write that waits for a batch. `expected` is the generation whose attempt a retry follows."""

    kind: Kind
    uuid: int
    spec: int
    at: int
    generation: Generation = (0, 0, 0)
    expected: Generation | None = None
    #: Whether it has found nothing to do: a replay, when its batch was assembled.
    refused: bool = False
    #: The key that the row had when the write was accepted; only a mutant uses it.
    former_key: Key | None = None
    #: Takes the outcome for the client.
    answer: Callable[[Outcome], None] = field(default=lambda outcome: None, repr=False)

    @property
    def by_client(self) -> bool:
        return self.kind is not Kind.RETRY


@dataclass(eq=False)
class Attempt:
    """A call under way. `superseded`: a client's write that was accepted later decides, not its result. `stale`: its row may
    not be the durable one any more. `waits`: it is in a batch of calls that has not been sent."""

    row: Row
    epoch: int
    superseded: bool = False
    stale: bool = False
    waits: bool = False


@dataclass(eq=False)
class Batch:
    """One fenced write. `final` has what becomes of each uuid: its row, or None where it is deleted; `finished` the rows
    whose deletes it makes durable, with their `events` if there is a sink; `published` the events that it deletes."""

    epoch: int
    owner: int
    ops: list[Write]
    final: dict[int, Row | None]
    finished: list[Row]
    deletes: list[tuple[int, Key | None]]
    delete_above: Key
    delete_to: Key | None
    events: list[Event | None]
    published: list[EventKey]

    @property
    def upserts(self) -> list[Row]:
        return [row for row in self.final.values() if row is not None]
