"""The flows of a simulated process: a few keys with few slots, some of which open late."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.ports.flow_gate import FlowHold

if TYPE_CHECKING:
    from .world import World

#: Slots of each key, and when it opens: one stays closed for longer than an order may wait elsewhere.
FLOWS = {"one": (1, 0.0), "two": (2, 40.0), "late": (1, 240.0)}


class _Hold:
    def __init__(self, gate: SimulatedGate, key: str) -> None:
        self._gate = gate
        self._key = key
        self._ended = False

    def close_flow(self, for_us: int) -> None:
        self._gate.close(self._key, for_us)

    def end(self) -> None:
        if self._ended:
            self._gate.world.broken("FLOW", f"a slot of {self._key} was returned twice")
        self._ended = True
        self._gate.in_use[self._key] -= 1
        self._gate.wake(self._key)


class SimulatedGate:
    """The port FlowGate of one process, which knows no other's: a dead process keeps no slot."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.in_use: Counter[str] = Counter()
        self.waiting: dict[str, int] = {}
        self._serve: Callable[[str], bool] | None = None
        self._served = ""
        self._opens_s = {key: opens_s for key, (_, opens_s) in FLOWS.items()}

    def attach(self, serve: Callable[[str], bool]) -> None:
        self._serve = serve
        for key, opens_s in self._opens_s.items():
            self._wake_at(key, opens_s)

    def detach(self) -> None:
        self._serve = None
        self.waiting.clear()

    def begin(self, key: str) -> FlowHold | None:
        if self.is_closed(key) or (self.waiting.get(key) and self._served != key):
            return None
        self.in_use[key] += 1
        return _Hold(self, key)

    def wait(self, key: str, count: int) -> None:
        if count < 0:
            self.world.broken("FLOW", f"{count} wait for {key}")
        if not count:
            self.waiting.pop(key, None)
            return
        if key not in self.waiting:
            self.world.log("waits for its flow", key)
            self.wake(key)
        self.waiting[key] = count

    def wake(self, key: str) -> None:
        asyncio.get_running_loop().call_soon(self._turn, key)

    def is_closed(self, key: str) -> bool:
        return self.in_use[key] >= FLOWS[key][0] or self.world.loop.time() < self._opens_s[key]

    def is_ordered(self, key: str) -> bool:
        return False

    def close(self, key: str, for_us: int) -> None:
        """Nothing more of the key begins for this time."""
        self._opens_s[key] = max(self._opens_s[key], self.world.loop.time() + for_us / 1e6)
        self._wake_at(key, self._opens_s[key])

    def _wake_at(self, key: str, at_s: float) -> None:
        asyncio.get_running_loop().call_later(max(at_s - self.world.loop.time(), 0) + 0.001, self.wake, key)

    def _turn(self, key: str) -> None:
        self._served = key
        try:
            while self._serve is not None and self.waiting.get(key) and not self.is_closed(key) and self._serve(key):
                pass
        finally:
            self._served = ""
