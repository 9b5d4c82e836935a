"""What a look reads of the schedule that a monitor watches, from a store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from tests.support.patience import PATIENCE_S
from tests.unit.test_watching import HOUR, START, S, run, schedule

from tocsin.model.errors import StoreError
from tocsin.model.monitor import Monitor, MonitorDefinition, MonitorState, Watched
from tocsin.model.run import Run, encode_run
from tocsin.model.timer import Timer, encode_record
from tocsin.ports.store import PAGE_BYTES_MAX, Found, HistoryRow, RunRow, ShardBatch, StoredRow
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock
from tocsin.timers.engine import schedule_looks
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.schedule_looks import ScheduleLooks, _Look
from tocsin.timers.engine.tenures import Tenures
from tocsin.timers.engine.watching import Seen

UUID = b"schedule".ljust(16)
OWNER = b"o" * 16
KEPT = 2**50


def generation(number: int) -> bytes:
    return number.to_bytes(32, "big")


class Looking:
    """A store with a schedule, whose runs have the generations 1 and following, and looks at it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self._number = 0
        self._epoch = 0

    async def open(self) -> None:
        await self.store.open(1)
        epoch = await self.store.claim(0, expected_epoch=0, owner=OWNER)
        assert epoch is not None
        self._epoch = epoch

    async def ended(self, runs: Sequence[Run], live: Timer | None) -> Found:
        """Writes these runs, and the schedule as it is afterwards, or not."""
        batch = ShardBatch(0, self._epoch, OWNER)
        for each in runs:
            self._number += 1
            batch.runs.append(RunRow(UUID, generation(self._number), encode_run(each), KEPT))
        row: StoredRow | None = None
        if live is not None:
            self._number += 1
            written = generation(self._number)
            row = StoredRow(live.execute_at, UUID, written, live.namespace, live.id, (), encode_record(live))
            batch.upserts.append(row)
        await self.store.apply([batch])
        return Found(row, None)

    async def look(self, watched: Watched | None, found: Found | None) -> Seen:
        state = MonitorState("", watched=watched)
        monitor = Timer("a", "m", START, "", START, START, monitor=Monitor(MonitorDefinition(schedule="s"), state))

        async def in_turn(reading: Any) -> Any:
            return await reading

        context = SimpleNamespace(store=self.store, in_turn=in_turn)
        looks = ScheduleLooks(cast("Any", context), cast("Any", None), 1)
        look = _Look(cast("Any", None), cast("Any", None), cast("Any", SimpleNamespace(timer=monitor)), 0, UUID)
        return await looks._seen(look, START, found)


@pytest.fixture
async def looking() -> Looking:
    found = Looking()
    await found.open()
    return found


@pytest.mark.parametrize("ended", [150, 1_200])
async def test_runs_are_taken_in_parts_that_a_store_can_write_at_once(looking: Looking, ended: int) -> None:
    """Also of more than are read at once, after looks have failed for long."""
    first = await looking.ended([], schedule(START))
    watched = Watched((await looking.look(None, first)).generation)
    many = [run(START + number * S, START + number * S) for number in range(ended)]
    found = await looking.ended(many, schedule(START + HOUR))
    taken: list[int] = []
    while True:
        seen = await looking.look(watched, found)
        assert 0 < len(seen.runs) <= 20
        taken += [each.execute_at for each in seen.runs]
        watched = msgspec.structs.replace(watched, generation=seen.generation)
        if not seen.more:
            break
    assert taken == [each.execute_at for each in many], "each once, oldest first"
    assert (await looking.look(watched, found)).runs == ()


async def test_of_a_schedule_that_is_there_later_its_first_occurrence_counts(looking: Looking) -> None:
    await looking.ended([run(START - HOUR, START - HOUR)], None)
    absent = await looking.look(None, None)
    assert absent.runs == ()
    found = await looking.ended([run(START, START)], schedule(START + HOUR))
    seen = await looking.look(Watched(absent.generation), found)
    assert [each.execute_at for each in seen.runs] == [START], (
        "what a former schedule of this name did counts for nothing"
    )


async def test_a_first_look_takes_no_runs(looking: Looking) -> None:
    found = await looking.ended([run(START - HOUR, START - HOUR)], schedule(START))
    seen = await looking.look(None, found)
    assert (seen.runs, seen.generation) == ((), found.live and found.live.generation)


class PartlyAway(MemoryStore):
    """A store with a shard and a history that can't be read."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        #: So many reads of the shard fail.
        self.failing = 3

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        if shard_id == 0 and self.failing:
            self.failing -= 1
            raise StoreError("its partition is away")
        return await super().fetch(shard_id, uuids)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> list[HistoryRow | RunRow]:
        if uuid == UUID:
            raise StoreError("its history is too long")
        return await super().runs(shard_id, uuid, before, limit, bytes_max)


class PartlyLooking:
    """Looks with such a store, and what they have moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = FakeClock()
        self.store, self.failures, self.moved = PartlyAway(clock), list[object](), list[object]()
        self.all_moved = asyncio.Event()
        context = Context(
            store=self.store,
            caller=None,  # type: ignore[arg-type]  # nobody is called
            clock=clock,
            limits=EngineLimits(),
            observe=self.failures.append,
            random=random.Random(1),
            incarnation=OWNER,
        )
        self.looks = ScheduleLooks(context, Tenures(context), 2)
        monkeypatch.setattr(self.looks, "_move_on", self._move_on)
        # What is asked for is here the look itself, as its row.
        monkeypatch.setattr(self.looks, "_look", lambda shard, row: row.look)

    def _move_on(self, shard: object, window: object, row: Any, seen: Seen) -> None:
        self.moved.append(row.look)
        if len(self.moved) == 2:
            self.all_moved.set()

    def look(self, shard_id: int, schedule_id: bytes) -> _Look:
        state = MonitorState("", watched=Watched(generation(1)))
        monitor = Timer("a", "m", START, "", START, START, monitor=Monitor(MonitorDefinition(schedule="s"), state))
        owner, row = SimpleNamespace(window=None), SimpleNamespace(timer=monitor, look=None)
        row.look = _Look(cast("Any", owner), cast("Any", None), cast("Any", row), shard_id, schedule_id)
        return cast("_Look", row.look)


async def test_what_cannot_be_read_of_one_schedule_keeps_up_no_look_at_another(monkeypatch: pytest.MonkeyPatch) -> None:
    partly = PartlyLooking(monkeypatch)
    await partly.store.open(2)
    away, long, healthy = (partly.look(0, b"other".ljust(16)), partly.look(1, UUID), partly.look(1, b"one".ljust(16)))
    assert await partly.looks._read([away, long, healthy]) == [away, long]
    assert partly.moved == [healthy]
    assert len(partly.failures) == 2


async def test_what_could_not_be_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_looks, "_RETRY_S", 0.0)
    partly = PartlyLooking(monkeypatch)
    await partly.store.open(2)
    reading = asyncio.ensure_future(partly.looks.run())
    away, healthy = partly.look(0, b"other".ljust(16)), partly.look(1, b"one".ljust(16))
    for each in (away, healthy):
        partly.looks.ask(each.shard, each.row)
    await asyncio.wait_for(partly.all_moved.wait(), PATIENCE_S)
    assert partly.moved == [healthy, away]
    assert (len(partly.failures), partly.store.failing) == (3, 0)
    reading.cancel()
