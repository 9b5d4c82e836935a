"""The interface of a connection between two nodes. The simulation has its own implementation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol


class Channel(Protocol):
    """Delivers messages to one other node, in order and at most once."""

    congested: bool

    def send(self, payload: bytes) -> None:
        """Sends the message, or drops it if the connection is lost. Never waits; `congested` shows when to pause."""

    def close(self) -> None:
        """Closes the channel after everything was sent."""

    def abort(self) -> None:
        """Closes the channel at once: nothing more is sent or received."""


class End(Protocol):
    """Receives the events of a channel."""

    def received(self, payload: bytes) -> None:
        """A message arrived."""

    def writable(self) -> None:
        """The channel is no longer congested."""

    def lost(self, reason: str) -> None:
        """The channel is closed; no further events follow."""


class CallerEnd(End, Protocol):
    """The end at the node that opened the connection."""

    def opened(self, channel: Channel) -> None:
        """Both nodes are authenticated. This is the first event."""


class PeerUnreachable(Exception):
    """No connection could be opened; `args[0]` is the reason."""


class PeerRefuses(PeerUnreachable):
    """The node does not know this one's secret, which lasts until one of them is restarted."""


#: Connects to the node with this incarnation at this address; has called `opened` when it returns. Raises PeerUnreachable.
Dial = Callable[[bytes, str, CallerEnd], Awaitable[None]]
