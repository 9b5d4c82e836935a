"""What the owner of a shard knows of one timer in its memory. Nodes report it to one another."""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: Why a timer is suspended whose address the settings of its shard's owner forbid.
REFUSED = "egress"


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
    sent just now. `node`, `namespace`: all slots of the node, or the namespace's share of them, are in use."""

    NONE = ""
    DISPATCH = "dispatch"
    HAND_OVER = "hand_over"
    DESTINATION = "destination"
    UNSENT = "unsent"
    NODE = "node"
    NAMESPACE = "namespace"


class Whereabouts(msgspec.Struct, frozen=True, array_like=True):
    """The timer in the owner's memory. `name` is the destination of an obstacle, or the reason why dispatch is paused. The
    attempt in flight has the number `attempt`, and times out at `until` (microseconds, by the owner's clock).

    Nodes of different releases exchange it: new fields are only added at the end, with a default, and unknown words of
    `place` and `obstacle` are possible.
    """

    place: str
    obstacle: str = Obstacle.NONE
    name: str = ""
    attempt: int = 0
    until: int = 0
