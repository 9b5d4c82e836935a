"""Whose turn it is among orders that wait: flows decide for their keys, and here is what waits for a credential."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tocsin.ports.credentials import CallCredentials
from tocsin.ports.flow_gate import UNLIMITED, FlowGate, FlowHold
from tocsin.service_calls.execution.order import Place

#: Orders that begin in one turn of the event loop.
_SERVED_MAX = 100


class _Line:
    """What stands at the gate of one flow: by key, in the order of their turns, how many orders wait."""

    __slots__ = ("keys", "total")

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.total = 0


class Turns:
    """The port FlowGate, for the keys of places (`Place`). Those of a credential are open while it can be sent, and served
    when that may have changed. One that has a flow as well stands at the flow's gate only while its credential can be sent:
    at an open gate, what can't begin would hold up the timers of the flow."""

    def __init__(self, flows: FlowGate, credentials: CallCredentials) -> None:
        self._flows, self._credentials = flows, credentials
        self._serve: Callable[[str], bool] | None = None
        # Keys of credentials that orders wait for, in the order of their turns, and how many orders.
        self._waiting: dict[str, int] = {}
        # By flow.
        self._lines: dict[str, _Line] = {}
        self._turn: asyncio.Handle | None = None

    def attach(self, serve: Callable[[str], bool]) -> None:
        self._serve = serve
        self._flows.attach(self._serve_flow)
        self._credentials.attach(self._schedule)

    def detach(self) -> None:
        self._serve = None
        self._flows.detach()
        self._credentials.detach(self._schedule)
        self._waiting.clear()
        self._lines.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def begin(self, key: str) -> FlowHold | None:
        place = Place.of(key)
        if self._lacks_credential(place):
            return None
        return UNLIMITED if place.flow is None else self._flows.begin(place.flow)

    def wait(self, key: str, count: int) -> None:
        place = Place.of(key)
        if place.flow is not None and (not count or not self._lacks_credential(place)):
            self._waiting.pop(key, None)
            self._line_up(key, place.flow, count)
            return
        if place.flow is not None:
            self._line_up(key, place.flow, 0)
        known = key in self._waiting
        if not count:
            self._waiting.pop(key, None)
        else:
            self._waiting[key] = count
            if not known:
                self._schedule()

    def wake(self, key: str) -> None:
        flow = Place.of(key).flow
        if flow is None or key in self._waiting:
            self._schedule()
        else:
            self._flows.wake(flow)

    def is_closed(self, key: str) -> bool:
        place = Place.of(key)
        return self._lacks_credential(place) or (place.flow is not None and self._flows.is_closed(place.flow))

    def is_ordered(self, key: str) -> bool:
        flow = Place.of(key).flow
        return flow is not None and self._flows.is_ordered(flow)

    def _lacks_credential(self, place: Place) -> bool:
        return (
            place.credential is not None and self._credentials.obstacle(place.credential, place.destination) is not None
        )

    # ------------------------------------------------------------------ flows

    def _line_up(self, key: str, flow: str, count: int) -> None:
        """So many orders of the key stand at the gate of the flow."""
        line = self._lines.get(flow)
        if line is None:
            if not count:
                return
            line = self._lines[flow] = _Line()
        line.total += count - line.keys.get(key, 0)
        if count:
            line.keys[key] = count
        else:
            line.keys.pop(key, None)
        if not line.total:
            del self._lines[flow]
        self._flows.wait(flow, line.total)

    def _serve_flow(self, flow: str) -> bool:
        """Begins an order of the flow, which has its turn: of the first key that has one which can begin."""
        line = self._lines.get(flow)
        for key in () if line is None else tuple(line.keys):
            count = line.keys.pop(key, 0) if line is not None else 0
            if line is None or not count or self._serve is None:
                continue
            # It becomes the last of the keys.
            line.keys[key] = count
            if self._lacks_credential(Place.of(key)):
                self.wait(key, count)
            elif self._serve(key):
                return True
        return False

    # ------------------------------------------------------------------ credentials

    def _schedule(self) -> None:
        if self._turn is None and self._waiting:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Serves the keys whose credential can be sent, an order of each in turn, until none can begin one. Those with a flow
        go to its gate."""
        self._turn = None
        left = _SERVED_MAX
        keys: deque[str] = deque()
        for key, count in tuple(self._waiting.items()):
            place = Place.of(key)
            if self._lacks_credential(place):
                continue
            if place.flow is None:
                keys.append(key)
            else:
                self.wait(key, count)
                # Others may have stood there, and could not begin.
                self._flows.wake(place.flow)
        while keys and self._serve is not None:
            if not left:
                self._schedule()
                return
            key = keys.popleft()
            if self._serve(key):
                left -= 1
                if key in self._waiting:
                    keys.append(key)
