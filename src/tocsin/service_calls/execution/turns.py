"""Whose turn it is among orders that wait: flows decide for their keys, and here is what waits for a credential."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tocsin.ports.credentials import CallCredentials
from tocsin.ports.flow_gate import UNLIMITED, FlowGate, FlowHold
from tocsin.service_calls.execution.order import waiting_for

#: Orders that begin in one turn of the event loop.
_SERVED_MAX = 100


class Turns:
    """The port FlowGate, for keys of flows and for those of credentials (`credential_key`). The latter are open while the
    credential can be sent, and served when that may have changed."""

    def __init__(self, flows: FlowGate, credentials: CallCredentials) -> None:
        self._flows, self._credentials = flows, credentials
        self._serve: Callable[[str], bool] | None = None
        # Keys of credentials that orders wait for, in the order of their turns.
        self._waiting: dict[str, None] = {}
        self._turn: asyncio.Handle | None = None

    def attach(self, serve: Callable[[str], bool]) -> None:
        self._serve = serve
        self._flows.attach(serve)
        self._credentials.attach(self._schedule)

    def detach(self) -> None:
        self._serve = None
        self._flows.detach()
        self._credentials.detach()
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def begin(self, key: str) -> FlowHold | None:
        if waiting_for(key) is None:
            return self._flows.begin(key)
        return None if self.is_closed(key) else UNLIMITED

    def wait(self, key: str, count: int) -> None:
        if waiting_for(key) is None:
            self._flows.wait(key, count)
        elif not count:
            self._waiting.pop(key, None)
        elif key not in self._waiting and self._serve is not None:
            self._waiting[key] = None
            self._schedule()

    def wake(self, key: str) -> None:
        if waiting_for(key) is None:
            self._flows.wake(key)
        else:
            self._schedule()

    def is_closed(self, key: str) -> bool:
        found = waiting_for(key)
        return self._flows.is_closed(key) if found is None else self._credentials.obstacle(*found) is not None

    def is_ordered(self, key: str) -> bool:
        return waiting_for(key) is None and self._flows.is_ordered(key)

    def _schedule(self) -> None:
        if self._turn is None and self._waiting:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Serves the keys whose credential can be sent, an order of each in turn, until none can begin one."""
        self._turn = None
        left = _SERVED_MAX
        keys = deque(key for key in self._waiting if not self.is_closed(key))
        while keys and self._serve is not None:
            if not left:
                self._schedule()
                return
            key = keys.popleft()
            if self._serve(key):
                left -= 1
                if key in self._waiting:
                    keys.append(key)
