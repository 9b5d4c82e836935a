"""What a connection between two nodes is to those who use it; the simulation has one of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol


class Channel(Protocol):
    """Brings messages to one other node, in order and at most once."""

    congested: bool

    def send(self, payload: bytes) -> None:
        """Sends, or forgets it when the connection is gone. Never waits; `congested` says when to stop for a while."""

    def close(self) -> None:
        """Ends it when everything was sent."""

    def abort(self) -> None:
        """Ends it at once: nothing is sent or received any more."""


class End(Protocol):
    """Whom a channel tells what comes."""

    def received(self, payload: bytes) -> None:
        """A message."""

    def writable(self) -> None:
        """It is not congested any more."""

    def lost(self, reason: str) -> None:
        """It is over; nothing follows."""


class CallerEnd(End, Protocol):
    """The end of the node that has made the connection."""

    def opened(self, channel: Channel) -> None:
        """Both nodes have proven themselves; whatever comes, comes after this."""


class PeerUnreachable(Exception):
    """No connection could be made; `args[0]` says why."""


#: Connects to the node of this incarnation at this address, and has told the end when it returns; raises PeerUnreachable.
Dial = Callable[[bytes, str, CallerEnd], Awaitable[None]]
