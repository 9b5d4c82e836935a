"""What a timer does now, or waits for, as its explanation states it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TimerState(StrEnum):
    """Where a timer is. `scheduled`, `retrying`: its instant, or that of its next attempt, is in the future. `waiting`: it is
    due and waits for its turn. `firing`: an attempt is in flight. `writing`: a result or a change is being stored. `paused`:
    its namespace is paused, or is being deleted. `suspended`: its stored record can't be read, or the settings of the node
    that owns its shard forbid the address that its URL leads to. `blocked`: it is due, and no node fires it now. `unknown`:
    it is due, and the owner of its shard could not be asked. `finished`: it has its final status."""

    SCHEDULED = "scheduled"
    RETRYING = "retrying"
    WAITING = "waiting"
    FIRING = "firing"
    WRITING = "writing"
    PAUSED = "paused"
    SUSPENDED = "suspended"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    FINISHED = "finished"


class WaitsFor(StrEnum):
    """What has to happen before the timer moves on. `instant`: its time. `destination`, `namespace`, `node`: a free slot
    there; a paused namespace: that it is resumed. `flow`: a slot or a token of its flow, or of its namespace's limits; a
    paused flow: that it is resumed. `response`: that of the receiver. `write`: that results or changes are
    stored. `lease`, `clock`: that of the node that owns its shard. `owner`: a node that owns its shard. `create`: that a
    client creates it again. `egress`: that the settings permit its address, or its URL leads elsewhere. `secret`: the key
    under which one of its secrets is encrypted. `credential`: that its credential can be sent: it has a token, exists, and
    may go to the URL."""

    INSTANT = "instant"
    DESTINATION = "destination"
    NAMESPACE = "namespace"
    NODE = "node"
    FLOW = "flow"
    RESPONSE = "response"
    WRITE = "write"
    LEASE = "lease"
    CLOCK = "clock"
    OWNER = "owner"
    CREATE = "create"
    EGRESS = "egress"
    SECRET = "secret"
    CREDENTIAL = "credential"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`next_at` is the instant (microseconds) of the next attempt, or of the time-out of the one in flight; None if it is
    not known. `sentence` is all of it in English, with instants in RFC 3339. `attempt` is the number of the
    attempt in flight; None if none is, or that is not known. `since` is when that attempt began; of a timer that is due
    otherwise, when it became due; of one whose owner could not be asked, since when the owner has not answered."""

    state: TimerState
    waits_for: WaitsFor | None
    next_at: int | None
    shard_id: int
    owner: str | None
    sentence: str
    attempt: int | None = None
    since: int | None = None
