"""Destinations, as people see them: a scheme, host and port to which timers are sent."""

from __future__ import annotations

import msgspec


class DestinationPause(msgspec.Struct, frozen=True, gc=False):
    """An operator has paused the destination, at this instant."""

    name: str
    paused_at: int
