"""When passes over secrets with a former key follow each other, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tocsin.model.errors import StoreUnavailable
from tocsin.ports.observer import Event
from tocsin.timers import resealing
from tocsin.timers.resealing import Resealing, SecretsPassFailed


class Passes(Resealing):
    """Notes when a pass over the agent's secrets begins. The first fails, the second leaves something, the others nothing."""

    def __init__(self, now: Any, events: list[Event]) -> None:
        context: Any = SimpleNamespace(observe=events.append)
        super().__init__(context, context, "", 0, lambda: False, lambda: context)
        self.begun: list[float] = []
        self._now = now

    async def check_calls(self) -> bool:
        self.begun.append(self._now())
        if len(self.begun) == 1:
            raise StoreUnavailable("statement timeout")
        return len(self.begun) > 2


async def test_a_failed_pass_is_reported_and_one_that_left_nothing_is_followed_after_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, events = [0.0], []  # type: tuple[list[float], list[Event]]

    async def sleep(_: float) -> None:
        clock[0] += 60
        if clock[0] > 5_000:
            raise asyncio.CancelledError

    monkeypatch.setattr(resealing, "monotonic", lambda: clock[0])
    monkeypatch.setattr(resealing, "asyncio", SimpleNamespace(sleep=sleep))
    passes = Passes(lambda: clock[0], events)
    with pytest.raises(asyncio.CancelledError):
        await passes.run()
    assert passes.begun == [0, 300, 600, 4_200]
    assert events == [SecretsPassFailed("calls", "StoreUnavailable: statement timeout")]
