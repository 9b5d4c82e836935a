"""How a shard's owner publishes events of namespaces with a sink: which sink holds up what, and what a full backlog does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import count

import msgspec
import pytest
from tests.support.patience import PATIENCE_S
from tests.unit.test_forwarded_writes import Node, timer

from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import DefiniteFailure
from tocsin.model.sink import GAP, SinkEvent, decode_event
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.store import Applied, FireKey, Loaded, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine import event_feed
from tocsin.timers.engine.event_log import EventLog

MS = 1_000


class Store(MemoryStore):
    """Counts the pages of events that are read; before each, `before_page` is awaited, and before batches are written,
    `before_batches`."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.pages = 0
        self.before_page: Callable[[], Awaitable[object]] | None = None
        self.before_batches: Callable[[Sequence[ShardBatch]], Awaitable[object]] | None = None

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        self.pages += 1
        if self.before_page is not None:
            await self.before_page()
        return await super().load_suspended(shard_id, after, limit)

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        if self.before_batches is not None:
            await self.before_batches(batches)
        return await super().apply(batches)


class Feed:
    """A node with one shard, whose sinks answer as `refusals` has it for a namespace, and otherwise take all. `before_answer`
    is awaited before each answer; `pages` has how many were read by then."""

    def __init__(self, **limits: int) -> None:
        self.store = Store()
        self.node = Node(self.store, commit_interval_us=MS, **limits)
        self.node.context.caller = self  # type: ignore[assignment]
        self.refusals: dict[str, str] = {}
        self.taken: list[SinkEvent] = []
        self.pages: list[int] = []
        self.before_answer: Callable[[], Awaitable[object]] | None = None
        self._names = (f"t{number}" for number in count())
        self._asked = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def log(self) -> EventLog:
        window = self.node.supervisor.shards[0].window
        assert window is not None
        return window.events

    async def start(self, *namespaces: str) -> None:
        await self.store.open(1)
        for name in namespaces:
            await self.node.service.namespaces.create(name, event_sink=f"nats://{name}")
        await self.node.supervisor.start()
        await asyncio.wait_for(self.node.owned.wait(), PATIENCE_S)

    async def end(self, number: int, namespace: str = "shop") -> None:
        """So many timers are created and deleted, durably."""
        names, service = [next(self._names) for _ in range(number)], self.node.service
        await asyncio.gather(*(service.create(timer(name, namespace)) for name in names))
        await asyncio.gather(*(service.delete(namespace, name) for name in names))

    async def asked(self, condition: Callable[[], object]) -> None:
        """Returns once the condition holds, which is looked at whenever a sink has answered."""
        async with asyncio.timeout(PATIENCE_S), self._asked:
            await self._asked.wait_for(condition)

    def destination(self, url: str) -> str:
        return url

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        self.pages.append(self.store.pages)
        task = asyncio.create_task(self._answer(invocation, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        if self.before_answer is not None:
            await self.before_answer()
        refusal = self.refusals.get(invocation.namespace)
        outcome: Outcome = Response(200) if refusal is None else NoResponse(refusal)
        if refusal is None and invocation.event:
            assert invocation.body is not None
            self.taken.append(decode_event(invocation.body.sent()))
        done(Exchange(outcome, None, 0))
        async with self._asked:
            self._asked.notify_all()


@pytest.fixture
async def feeds() -> AsyncIterator[Callable[..., Feed]]:
    made: list[Feed] = []

    def make(**limits: int) -> Feed:
        made.append(Feed(**limits))
        return made[-1]

    yield make
    for each in made:
        await each.node.supervisor.close()


async def test_a_shard_at_its_backlog_publishes_however_many_events_come(feeds: Callable[..., Feed]) -> None:
    feed = feeds(sink_backlog_max=100, sink_page_rows=20, sink_pause_initial_us=1, sink_pause_max_us=1)
    feed.refusals["shop"] = "NO_STREAM"
    await feed.start("shop")
    await feed.end(100)
    enough = asyncio.Event()

    async def more() -> None:
        """More ends than one chunk of lost ones has, durable before the page is read."""
        if feed.store.pages - before > 60:
            feed.store.before_page = None
            enough.set()
        else:
            await feed.end(60)

    del feed.refusals["shop"]
    before, feed.store.before_page = feed.store.pages, more
    await feed.end(1)
    await asyncio.wait_for(enough.wait(), PATIENCE_S)
    assert len(feed.taken) >= 10


async def test_a_sink_that_is_slower_than_the_ends_keeps_its_backlog_and_learns_what_it_misses(
    feeds: Callable[..., Feed],
) -> None:
    feed = feeds(sink_backlog_max=100, sink_page_rows=20)
    await feed.start("shop")
    rows: list[int] = []

    async def faster() -> None:
        rows.append(feed.log.rows)
        if len(rows) <= 60:
            await feed.end(20)

    feed.before_answer = faster
    await feed.end(1)
    await feed.asked(lambda: len(rows) > 60 and feed.log.rows == len(feed.log.removed))
    # The backlog, what is lost together, and the ends during the events that are tried between.
    assert max(rows) <= 100 + 50 + 12 * 20
    gaps = [event for event in feed.taken if event.type == GAP]
    assert gaps
    assert len(feed.taken) - len(gaps) + sum(gap.lost for gap in gaps) == 1 + 60 * 20


async def test_a_sink_that_acknowledges_nothing_keeps_no_other_from_publishing(feeds: Callable[..., Feed]) -> None:
    day_us = 86_400 * 1_000 * MS
    feed = feeds(sink_pause_initial_us=day_us, sink_pause_max_us=day_us)
    feed.refusals["deaf"] = "TIMEOUT"
    await feed.start("deaf", "shop")
    await feed.end(1, "deaf")
    await feed.end(2)
    await feed.asked(lambda: len(feed.taken) == 2)
    assert {event.namespace for event in feed.taken} == {"shop"}


async def test_a_sink_that_stays_silent_delays_no_event_of_others_and_goes_on_once_it_answers(
    feeds: Callable[..., Feed],
) -> None:
    feed = feeds(sink_pause_initial_us=1, sink_pause_max_us=1)
    feed.refusals["deaf"] = "TIMEOUT"
    await feed.start("deaf", "shop")
    await feed.end(2, "deaf")
    await feed.asked(lambda: feed.pages)
    ask, probed, answers = feed._answer, asyncio.Event(), asyncio.Event()

    async def late(invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        if invocation.namespace == "deaf":
            probed.set()
            await answers.wait()
        await ask(invocation, done)

    feed._answer = late  # type: ignore[method-assign]
    await feed.node.supervisor.sinks.check()
    await asyncio.wait_for(probed.wait(), PATIENCE_S)
    await feed.end(3)
    await feed.asked(lambda: len(feed.taken) == 3)
    del feed.refusals["deaf"]
    answers.set()
    await feed.asked(lambda: len({event.id for event in feed.taken}) == 5)
    assert [event.namespace for event in feed.taken[:3]] == ["shop"] * 3
    await feed.end(1, "deaf")
    await feed.asked(lambda: len({event.id for event in feed.taken}) == 6)


async def test_sinks_without_a_stream_are_tried_again_without_what_lies_behind_or_between(
    feeds: Callable[..., Feed],
) -> None:
    feed = feeds(sink_page_rows=10, sink_pause_initial_us=1, sink_pause_max_us=1)
    feed.refusals |= {"a": "NO_STREAM", "b": "NO_STREAM"}
    await feed.start("a", "b", "shop")
    await feed.end(100, "a")
    await feed.end(100, "b")
    await feed.end(1)
    await feed.asked(lambda: feed.taken)
    for _ in range(4):
        tried = len(feed.pages)
        await feed.node.supervisor.sinks.check()
        await feed.asked(lambda tried=tried: len(feed.pages) >= tried + 2)
    # Each is tried, after one page.
    assert feed.pages[-1] - feed.pages[-3] <= 2


async def test_a_hand_over_waits_for_no_deletes_of_events(feeds: Callable[..., Feed]) -> None:
    feed = feeds()
    await feed.start("shop")
    log = feed.log
    log.removed |= {number.to_bytes(16): None for number in range(100_000)}
    await feed.node.supervisor.close()
    assert log.removed
    assert not any(shard.owner for shard in await feed.store.shards())


async def test_events_without_a_sink_are_removed_in_steps_that_leave_room_for_others(
    feeds: Callable[..., Feed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_REMOVED_MAX", 20)
    feed = feeds(sink_pause_initial_us=1, sink_pause_max_us=1)
    feed.refusals["shop"] = "NO_STREAM"
    await feed.start("shop")
    await feed.end(100)
    removed: list[int] = []
    gone = asyncio.Event()

    async def note(batches: Sequence[ShardBatch]) -> None:
        removed.append(len(feed.log.removed))
        if feed.log.rows == len(feed.log.removed):
            gone.set()

    feed.store.before_batches = note
    await feed.node.service.namespaces.update("shop", event_sink=None)
    await feed.node.supervisor.sinks.check()
    await asyncio.wait_for(gone.wait(), PATIENCE_S)
    assert max(removed) == 20


async def test_an_end_whose_history_the_store_refuses_has_its_event(feeds: Callable[..., Feed]) -> None:
    feed = feeds()

    async def refuse(batches: Sequence[ShardBatch]) -> None:
        if any(batch.history for batch in batches):
            raise DefiniteFailure("no room for history")

    feed.store.before_batches = refuse
    await feed.start("shop")
    due = msgspec.structs.replace(timer("t", "shop"), execute_at=feed.node.clock.now_us())
    await feed.node.service.create(due)
    await feed.asked(lambda: feed.taken)
    assert [(event.type, event.timer_id) for event in feed.taken] == [("timer.completed", "t")]
