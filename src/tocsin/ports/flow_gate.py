"""The limits of flows, as the service agent sees them: its calls take slots and tokens of the same rules as timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class FlowHold(Protocol):
    """What an attempt has taken of its flow."""

    def close_flow(self, for_us: int) -> None:
        """Closes the flow's key for this many microseconds, because the receiver has asked for that, if its rule provides for
        it. Call it before `end`."""

    def end(self) -> None:
        """The attempt has ended: its slot is free. Call it once."""


class FlowGate(Protocol):
    """Lets attempts begin within the limits of the flows of one namespace, for which timers wait as well. All methods must be
    called on one event loop's thread, and none waits."""

    def attach(self, serve: Callable[[str], bool]) -> None:
        """From now on `serve` is called with a key when one of those that wait for it may begin: it calls `begin`, and
        returns whether an attempt began. The methods of this port never call it."""

    def detach(self) -> None:
        """Nothing waits any more, and `serve` is not called again. What was taken has to be returned nonetheless."""

    def begin(self, key: str) -> FlowHold | None:
        """Takes a slot and a token for an attempt of this key, where a rule limits it; None if its flow is closed, or others
        wait for their turn. Then `wait` has to follow."""

    def wait(self, key: str, count: int) -> None:
        """So many attempts of the key wait now. Call it after each change of the number."""

    def wake(self, key: str) -> None:
        """The key, of which attempts wait, may be able to begin one that it could not begin when it was served."""

    def is_closed(self, key: str) -> bool:
        """Whether an attempt of this key would have to wait now, as far as this node knows."""

    def is_ordered(self, key: str) -> bool:
        """Whether the timers of this key begin in order. Calls have no place in it, and are refused."""


class _Unlimited:
    """The hold of an attempt that nothing limits."""

    def close_flow(self, for_us: int) -> None:
        pass

    def end(self) -> None:
        pass


UNLIMITED: FlowHold = _Unlimited()
