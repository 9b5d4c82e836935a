"""The shards of a lane share its commits: the limit is one of each commit, and none of them waits for all of another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.completions import Noted
from tests.support.patience import PATIENCE_S
from tests.unit.test_forwarded_writes import Node, timer

from tocsin.model.errors import TimerNotFound
from tocsin.model.timer import Changes
from tocsin.ports.forward import Write, WriteKind, Written
from tocsin.ports.store import Applied, Found, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.rows import Row


class Recording(MemoryStore):
    """Notes the timers of each commit by their shards, the first of which waits until it is released."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.commits: list[list[int]] = []
        self.shards_of_commits: list[list[int]] = []
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        self.commits.append([batch.shard_id for batch in batches for _ in batch.upserts])
        self.shards_of_commits.append([batch.shard_id for batch in batches])
        self.asked.set()
        await self.let.wait()
        return await super().apply(batches)


async def test_a_commit_has_a_limit_that_its_shards_share_in_turn() -> None:
    store = Recording()
    await store.open(3)
    # Each timer is larger than the limit.
    node = Node(store, shards=3, lanes=1, batch_bytes_max=1)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await asyncio.wait_for(node.owned.wait(), PATIENCE_S)
    answers = []
    for number, shard_id in enumerate((0, 0, 0, 0, 0, 1, 2)):
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        deadline_us = node.clock.boottime_us() + 60_000_000
        uuid = bytes([number]) * 16
        write = Write(WriteKind.CREATE, shard_id, uuid, "default", timer(f"t{number}"), None, deadline_us)
        node.service.accept(write, None, Noted(answer.set_result))
        answers.append(answer)
    await asyncio.wait_for(store.asked.wait(), PATIENCE_S)
    store.let.set()
    assert all([isinstance(await each, Written) for each in answers])
    assert store.commits == [[0], [1], [2], [0], [0], [0], [0]]
    await node.supervisor.close()


async def test_deletes_of_events_count_as_rows_of_a_commit() -> None:
    store = Recording()
    store.let.set()
    await store.open(2)
    node = Node(store, shards=2, lanes=1, batch_rows_max=10)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await asyncio.wait_for(node.owned.wait(), PATIENCE_S)
    first = node.supervisor.shards[0]
    assert first.window is not None
    first.window.events.removed |= {number.to_bytes(16): None for number in range(10)}
    first.lane.schedule(first, urgent=False)
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    deadline_us = node.clock.boottime_us() + 60_000_000
    write = Write(WriteKind.CREATE, 1, b"t" * 16, "default", timer("t"), None, deadline_us)
    node.service.accept(write, None, Noted(answer.set_result))
    assert isinstance(await answer, Written)
    await node.supervisor.close()
    assert store.shards_of_commits == [[0], [1]]


class BothAsked(MemoryStore):
    """Answers what is stored when it has been asked about two shards."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked: set[int] = set()
        self.both = asyncio.Event()

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        self.asked.add(shard_id)
        if len(self.asked) == 2:
            self.both.set()
        await self.both.wait()
        return await super().fetch(shard_id, uuids)


async def test_a_commit_reads_the_states_of_several_shards_at_the_same_time() -> None:
    store = BothAsked()
    await store.open(2)
    node = Node(store, shards=2, lanes=1)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await asyncio.wait_for(node.owned.wait(), PATIENCE_S)
    answers = []
    for shard_id in range(2):
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        deadline_us = node.clock.boottime_us() + 60_000_000
        write = Write(WriteKind.REPLAY, shard_id, b"t" * 16, "default", None, Changes(), deadline_us)
        node.service.accept(write, None, Noted(answer.set_result))
        answers.append(answer)
    async with asyncio.timeout(PATIENCE_S):
        assert {type(await each) for each in answers} == {TimerNotFound}
    await node.supervisor.close()


_RESULTS = 2_000


class CountingResults(MemoryStore):
    """Notes how many results of callbacks each commit has."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.counts: list[int] = []
        self.written = asyncio.Event()

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        if count := sum(len(batch.history) for batch in batches):
            self.counts.append(count)
        if sum(self.counts) == _RESULTS:
            self.written.set()
        return await super().apply(batches)


@pytest.mark.parametrize("waited_us, grows", [(0, False), (10_000_000, True)])
async def test_commits_that_are_too_slow_take_fewer_results_unless_these_fall_behind(
    waited_us: int, grows: bool
) -> None:
    store = CountingResults()
    await store.open(1)
    # Every commit is slower than this.
    node = Node(store, commit_target_us=-1)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await asyncio.wait_for(node.owned.wait(), PATIENCE_S)
    shard = node.supervisor.shards[0]
    window = shard.window
    assert window is not None
    since_us = node.clock.boottime_us() - waited_us
    for number in range(_RESULTS):
        uuid = number.to_bytes(16)
        window.finished[uuid] = Finished(
            Row((number, uuid), b"", timer(f"t{number}"), 0), timer(f"t{number}"), since_us
        )
    shard.lane.schedule(shard, urgent=False)
    await asyncio.wait_for(store.written.wait(), PATIENCE_S)
    await node.supervisor.close()
    first, second = store.counts[:2]
    assert second > first if grows else second < first
