"""Destinations, as people see them: a scheme, host and port to which timers are sent."""

from __future__ import annotations

import msgspec


def destination_name(origin: str) -> str:
    """The name of the destination that requests to this scheme, host and port belong to. A dot at the end of a host makes no
    other one: it leads to the same receiver. Connections and credentials distinguish them, since only a name without it is
    completed by search domains."""
    return origin.replace(".:", ":", 1)


class DestinationPause(msgspec.Struct, frozen=True, gc=False):
    """An operator has paused the destination, at this instant."""

    name: str
    paused_at: int
