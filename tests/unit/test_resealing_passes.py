"""When passes over secrets with a former key follow each other, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tocsin.administration import SealKey, encoded, note_seal_key, seal_keys
from tocsin.model.errors import StoreUnavailable
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.ports.observer import Event
from tocsin.sealing import KeySeals, key_id
from tocsin.stores.memory import MemoryStore
from tocsin.timers import resealing
from tocsin.timers.jobs import JOBS
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


async def test_a_job_with_a_secret_under_a_former_key_is_waited_for_until_it_ends() -> None:
    former, present = (key_id(bytes([number]) * 32) for number in (1, 2))
    store = MemoryStore()
    await store.open(1)
    for since, key in enumerate((former, present)):
        await note_seal_key(store, SealKey(key, since))

    async def called(call: Any) -> Any:
        return await call

    async def no_namespaces() -> list[Any]:
        return []

    context: Any = SimpleNamespace(
        store=store, bounded=called, observe=lambda event: None, clock=SimpleNamespace(now_us=lambda: 1)
    )
    service: Any = SimpleNamespace(namespaces=SimpleNamespace(all=no_namespaces))
    url = "http://host/?token=" + KeySeals([bytes([1]) * 32]).seal("secret", "job:j")
    for state, waiting in ((JobState.PAUSED, 1), (JobState.CANCELED, 0)):
        job = Job("j", "a", JobKind.TIMERS, JobAction.SET_URL, RowFilter(1), 1, 1, state, url=url)
        await store.delete_records(JOBS, ["j"])
        await store.put_record(JOBS, "j", encoded(job), None)
        assert await Resealing(context, service, present, 0, lambda: True).check() == (not waiting)
        assert {key.id: key.waiting for key in await seal_keys(store)} == {former: waiting, present: None}
