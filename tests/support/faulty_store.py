"""A store decorator that injects faults into the calls that a test names, or all of them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.ports.store import Store


class Fault(Enum):
    """A fault of one call."""

    #: DefiniteFailure, without effect.
    FAIL = "fail"
    #: OutcomeUnknown; the call took effect.
    UNKNOWN_DONE = "unknown_done"
    #: OutcomeUnknown; the call took no effect.
    UNKNOWN_LOST = "unknown_lost"


class FaultyStore:
    """A decorator of any store. While `is_cut`, each call raises StoreUnavailable."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.is_cut = False
        self._scripts: dict[str, deque[Fault]] = defaultdict(deque)

    def script(self, method: str, *faults: Fault) -> None:
        """Sets the faults of a method's next calls, in order."""
        self._scripts[method].extend(faults)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_cut:
                raise StoreUnavailable(f"{name}: the store can't be reached")
            script = self._scripts[name]
            fault = script.popleft() if script else None
            if fault is Fault.FAIL:
                raise DefiniteFailure(f"{name}: injected failure")
            result = None if fault is Fault.UNKNOWN_LOST else await getattr(self.inner, name)(*args, **kwargs)
            if fault is not None:
                raise OutcomeUnknown(f"{name}: injected loss")
            return result

        return call
