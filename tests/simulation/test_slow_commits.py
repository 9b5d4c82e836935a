"""Stores that take results of callbacks more slowly than calls are made: what waits in memory, and what goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

import pytest

from tests.simulation.crowd import SECOND, Crowd
from tocsin.model.answer import Response
from tocsin.model.errors import DefiniteFailure
from tocsin.model.retry import RetryPolicy
from tocsin.ports.observer import PageLoaded
from tocsin.ports.store import Applied, ShardBatch
from tocsin.testing.clock import EPOCH_US


class Commit(NamedTuple):
    """How many rows a commit wrote, and results of callbacks among what it recorded."""

    written: int
    results: int


class SlowCrowd(Crowd):
    """Each commit takes `commit_s`, until it is set to 0. A row with more than `refused_bytes` is refused."""

    def __init__(self, commit_s: float, *, refused_bytes: int = 1 << 30, **limits: Any) -> None:
        super().__init__(**limits)
        self.commit_s, self.refused_bytes = commit_s, refused_bytes
        self.commits: list[Commit] = []
        self._apply = self.store.apply

    def run_slowly(self, seconds: float, then: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """As `run`, on the slow store."""

        async def begin() -> None:
            self.store.apply = self._slowly  # type: ignore[method-assign]

        self.run(seconds, then, before=begin)

    async def _slowly(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        await asyncio.sleep(self.commit_s)
        if any(len(row.record) > self.refused_bytes for batch in batches for row in batch.upserts):
            raise DefiniteFailure("too large")
        rows = (sum(len(batch.upserts) for batch in batches), sum(len(batch.history) for batch in batches))
        self.commits.append(Commit(*rows))
        return await self._apply(batches)

    def unwritten(self) -> int:
        """How many results are not durable now."""
        windows = [shard.window for shard in self.supervisor.shards.values()]
        return sum(window.unwritten()[0] for window in windows if window is not None)

    def called_by(self, second: float) -> int:
        """How many calls were made until then."""
        return sum(call.at_us < EPOCH_US + second * SECOND for call in self.receivers.calls)


@pytest.mark.parametrize("size", [0, 10_000], ids=["many", "large"])
def test_firing_waits_for_a_store_that_takes_fewer_results_than_there_are_calls(size: int) -> None:
    room = {"window_bytes_max": 400 * size} if size else {"window_timers_max": 400}
    # 100 rows a second.
    crowd = SlowCrowd(
        0.5, shards=2, lanes=1, commit_target_us=0, batch_rows_max=50, callbacks_in_flight_max=100, **room
    )
    for i in range(2_000):
        crowd.keep(f"f{i}", "fine", -60 + i / 1_000, shard=i % 2, size=size)
    most: list[int] = []

    async def create() -> None:
        for i in range(600):
            # As many as the store takes: they would leave no room for results.
            for shard in range(2):
                crowd.create(f"c{i}-{shard}", "later", 3_600, shard=shard)
            most.append(crowd.unwritten())
            await asyncio.sleep(0.02)
        # Before they fall behind, one result at least is written, however many writes there are.
        assert max(commit.written + commit.results for commit in crowd.commits) <= 50 + 1
        crowd.commit_s = 0

    crowd.run_slowly(40, create)
    assert len(crowd.late_s()) == len(crowd.receivers.calls) == 2_000
    # What is in flight counts only when it is answered.
    assert max(most) <= 400 + 100
    # Half of each commit.
    assert 300 < crowd.called_by(12) - crowd.called_by(2) < 700


def test_a_burst_in_one_of_many_shards_does_not_wait_for_its_results() -> None:
    # A thousand results a second; its share are a thousand timers.
    crowd = SlowCrowd(0.1, shards=16, commit_target_us=0, window_timers_max=16_000)
    for i in range(6_000):
        crowd.keep(f"f{i}", f"host{i % 40}", 3)
    crowd.run_slowly(60)
    assert crowd.called_by(6) == len(crowd.receivers.calls) == 6_000


def test_clients_get_what_few_results_leave_of_slow_commits() -> None:
    crowd = SlowCrowd(4, batch_rows_max=50, write_timeout_us=1_000 * SECOND)
    for i in range(60):
        crowd.keep(f"f{i}", "fine", 1 + i)

    async def create() -> None:
        for i in range(1_500):
            crowd.create(f"c{i}", "later", 3_600)
            await asyncio.sleep(0.03)

    crowd.run_slowly(50, create)
    full = crowd.commits[3:10]
    assert min(commit.results for commit in full) >= 3
    assert min(commit.written + commit.results for commit in full) == 50


def test_deferred_timers_do_not_have_all_results_read_again() -> None:
    crowd = SlowCrowd(
        0.3, lanes=1, commit_target_us=0, window_timers_max=2_000, batch_rows_max=100, load_page_rows=100,
        destination_in_flight_max=200, callbacks_in_flight_max=200,
    )  # fmt: skip
    crowd.receivers.takes_s["fine"] = 0.3
    for i in range(200):
        crowd.keep(f"h{i}", "hung", -120 + i / 1_000)
    for i in range(20_000):
        crowd.keep(f"f{i}", "fine", -60 + i / 1_000)
    crowd.run_slowly(60)
    read = sum(event.rows for event in crowd.events if isinstance(event, PageLoaded))
    assert read < 3 * len(crowd.late_s())


def test_a_shard_goes_on_after_a_commit_of_retries_alone_was_refused() -> None:
    crowd = SlowCrowd(0.5, refused_bytes=50_000, window_bytes_max=400_000)
    crowd.retry = RetryPolicy(max_attempts=20)
    crowd.receivers.answers["sick"] = (Response(500), 1e9)
    for i in range(3):
        # At that time its loader looks whether there is more to load, and then not again by itself.
        crowd.keep(f"s{i}", "sick", 149.7, size=80_000)
    for i in range(20):
        crowd.keep(f"f{i}", "fine", 400 + i)
    crowd.run_slowly(440)
    assert len(crowd.late_s()) == 20
