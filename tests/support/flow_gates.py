"""Gates of flows for tests of the service agent without an engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tocsin.ports.flow_gate import UNLIMITED, FlowHold


class OpenGate:
    """The port FlowGate where nothing is limited."""

    def __init__(self) -> None:
        self.serve: Callable[[str], bool] | None = None
        self.waiting: dict[str, int] = {}

    def attach(self, serve: Callable[[str], bool]) -> None:
        self.serve = serve

    def detach(self) -> None:
        self.serve = None
        self.waiting.clear()

    def begin(self, key: str) -> FlowHold | None:
        return UNLIMITED

    def wait(self, key: str, count: int) -> None:
        if count:
            self.waiting[key] = count
        else:
            self.waiting.pop(key, None)

    def wake(self, key: str) -> None:
        pass

    def is_closed(self, key: str) -> bool:
        return False

    def is_ordered(self, key: str) -> bool:
        return False


class _Slot:
    def __init__(self, gate: SlotsGate, key: str) -> None:
        self._gate = gate
        self._key = key

    def close_flow(self, for_us: int) -> None:
        self._gate.closed_for[self._key] = for_us

    def end(self) -> None:
        self._gate.in_use[self._key] -= 1
        self._gate.wake(self._key)


class SlotsGate(OpenGate):
    """A gate with a number of slots for each key, of which none is free at first. What waits is served when the test calls
    `open`, and when a slot becomes free."""

    def __init__(self) -> None:
        super().__init__()
        self.slots: defaultdict[str, int] = defaultdict(int)
        self.in_use: defaultdict[str, int] = defaultdict(int)
        self.closed_for: dict[str, int] = {}
        self._served = False

    def open(self, key: str, slots: int) -> None:
        """From now on the key has so many slots."""
        self.slots[key] = slots
        self.wake(key)

    def begin(self, key: str) -> FlowHold | None:
        if self.in_use[key] >= self.slots[key]:
            return None
        self.in_use[key] += 1
        return _Slot(self, key)

    def wait(self, key: str, count: int) -> None:
        super().wait(key, count)
        if not self._served:
            self.wake(key)

    def wake(self, key: str) -> None:
        if self.serve is None or self._served:
            return
        self._served = True
        try:
            while self.waiting.get(key) and self.in_use[key] < self.slots[key] and self.serve(key):
                pass
        finally:
            self._served = False

    def is_ordered(self, key: str) -> bool:
        return False

    def is_closed(self, key: str) -> bool:
        return self.in_use[key] >= self.slots[key]
