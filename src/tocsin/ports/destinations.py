"""What nodes exchange about destinations. Nodes of different releases exchange it: new fields are only added at the end, with
a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

#: Destinations that one answer has, at most.
REPORTED_MAX = 500


class DestinationQuestion(msgspec.Struct, frozen=True, array_like=True):
    """Which destinations are wanted: those with these names, or, without any, the `most` that need attention first. With
    `probe` the breakers of those named let a probe begin at once."""

    names: list[str] = []
    most: int = REPORTED_MAX
    probe: bool = False


class DestinationReport(msgspec.Struct, frozen=True, array_like=True):
    """A destination as one node knows it: attempts in flight, how many there may be, and due timers that wait in its memory;
    attempts that ended within 30 seconds, and those of them that failed; the state of its breaker, and in how many
    microseconds the next probe begins; the last failure, and its instant by the node's clock (0: none); how long ago an
    attempt succeeded (None: not lately)."""

    name: str
    in_flight: int
    limit: int
    waiting: int
    attempts: int = 0
    failures: int = 0
    breaker: str = "closed"
    wait_us: int = 0
    last_error: str = ""
    last_error_at: int = 0
    succeeded_us_ago: int | None = None


class DestinationPeers(Protocol):
    """The other nodes, for what concerns destinations."""

    async def destinations(self, question: DestinationQuestion) -> Mapping[bytes, list[DestinationReport]]:
        """What the nodes know of the destinations, by incarnation; a node that does not answer in time is absent."""
