"""What a node does about schedules besides firing them, in virtual time: their history stays bounded, and newer time zones
reach rows that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from tests.support.cases import each
from tocsin.administration import CALENDAR_RECORDS
from tocsin.model.calendar import WEEKDAYS, Calendar
from tocsin.model.errors import StoreUnavailable
from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.recurrence import tzdata_version
from tocsin.model.run import decode_run
from tocsin.model.schedule import Definition, Pause, Schedule, State
from tocsin.model.timer import Changes, Timer
from tocsin.ports.observer import SchedulesReplanned, TimerSuspended
from tocsin.ports.store import Applied, Found, ShardBatch, generation
from tocsin.testing.clock import EPOCH_US
from tocsin.timers.engine.rows import OpKind, Row, WriteOp, stored

from .crowd import SECOND, Crowd


def keep(
    crowd: Crowd, name: str, definition: Definition, due_s: float, *, host: str = "fine", **state: object
) -> bytes:
    """Puts a schedule into the store, as a former owner of its shard has planned it. Returns its uuid."""
    due, uuid = EPOCH_US + int(due_s * SECOND), schedule_uuid("a", name)
    schedule = Schedule(definition, State(EPOCH_US - 1, **state))  # type: ignore[arg-type]
    timer = Timer(
        "a", name, due, f"http://{host}/", EPOCH_US, EPOCH_US,
        schedule=schedule, firing=f"s-{due}", timeout_us=3 * SECOND,
    )  # fmt: skip
    crowd._kept.setdefault(0, []).append(stored(Row((due, uuid), generation(0, bytes(16), 1), timer, 0)))
    return uuid


def test_history_keeps_the_newest_occurrences_of_each_schedule() -> None:
    crowd = Crowd(occurrences_kept=20, purge_interval_us=5 * SECOND)
    every = Definition(every_us=SECOND, anchor=EPOCH_US)
    uuids = [keep(crowd, name, every, 0) for name in ("s", "t")]
    crowd.keep("u", "fine", 1)
    most = 0

    async def watch() -> None:
        nonlocal most
        while crowd.loop.time() < 600:
            await asyncio.sleep(1.0)
            runs = crowd.store._shards[0].runs
            for uuid in uuids:
                most = max(most, len(runs.get(uuid, ())))
                instants = sorted(decode_run(run.record).execute_at for run in runs.get(uuid, {}).values())
                # The newest ones: none is missing between them and the occurrence at hand.
                assert instants == list(range(instants[0], instants[0] + len(instants) * SECOND, SECOND))
                assert crowd.now_us() - instants[-1] < 2 * SECOND
                assert len(instants) >= min(20, int(crowd.loop.time()) - 1)

    crowd.run(600, watch)
    # A hundred more, and those of the time between two passes.
    assert 100 < most <= 20 + 100 + 5 + 1


def test_records_of_missed_instants_are_bounded_too() -> None:
    """A receiver that takes longer than the interval leaves one record for several instants."""
    crowd = Crowd(occurrences_kept=10, purge_interval_us=5 * SECOND)
    uuid = keep(crowd, "s", Definition(every_us=SECOND, anchor=EPOCH_US), 0, host="hung")
    crowd.run(900)
    runs = [decode_run(run.record) for run in crowd.store._shards[0].runs[uuid].values()]
    assert 10 <= len(runs) <= 10 + 100 + 2
    assert any(each.instants > 1 for run in runs for each in run.missed)


def test_newer_time_zones_reach_schedules_that_wait() -> None:
    """Rows planned before a zone's clocks were moved, by seconds here. One waits in memory, and one is on the second page."""
    crowd = Crowd(look_ahead_max_us=100 * SECOND)

    def at(seconds: int) -> Definition:
        local = datetime.fromtimestamp(EPOCH_US // SECOND + seconds, UTC)
        return Definition(cron=f"{local:%S %M %H} * * *", time_zone="Etc/GMT")

    for number in range(150):
        keep(crowd, f"s{number}", Definition(every_us=86_400 * SECOND, anchor=EPOCH_US), 86_400)
    waiting = {
        "z-earlier": keep(crowd, "z-earlier", at(60), 120, tzdata="2000.1"),
        "later": keep(crowd, "later", at(200), 90, tzdata="2000.1"),
        "right": keep(crowd, "right", at(60), 60, tzdata="2000.1"),
        # During a rolling upgrade.
        "newer": keep(crowd, "newer", at(60), 120, tzdata="9999.1"),
        "paused": keep(crowd, "paused", at(60), 120, tzdata="2000.1", paused="request"),
    }
    crowd._kept[0][-1] = crowd._kept[0][-1]._replace(suspended="schedule:paused")

    async def watch() -> None:
        await asyncio.sleep(10.0)
        live = crowd.store._shards[0].live
        instants = {name: (live[uuid].execute_at - EPOCH_US) // SECOND for name, uuid in waiting.items()}
        assert instants == {"z-earlier": 60, "later": 200, "right": 60, "newer": 120, "paused": 120}

    crowd.run(250, watch)
    called = {call.invocation.timer_id: (call.at_us - EPOCH_US) // SECOND for call in crowd.receivers.calls}
    assert called == {"z-earlier": 60, "later": 200, "right": 60, "newer": 120}
    assert [event for event in crowd.events if isinstance(event, SchedulesReplanned)] == [
        SchedulesReplanned(2, tzdata_version())
    ]


def test_a_changed_calendar_reaches_schedules_that_wait() -> None:
    """One excludes today at first, and nothing afterwards; another one the other way round. What has passed meanwhile as
    excluded is not caught up with."""
    crowd = Crowd(look_ahead_max_us=100 * SECOND)
    every = {"every_us": 30 * SECOND, "anchor": EPOCH_US}
    keep(crowd, "allowed", Definition(skip=("closed",), **every), 86_400, waits=True, calendars="before")  # type: ignore[arg-type]
    keep(crowd, "excluded", Definition(skip=("open",), **every), 30)  # type: ignore[arg-type]
    never = (date(2000, 1, 1),)

    def calendar(name: str, version: int, *, excludes: bool) -> Calendar:
        return Calendar(
            "a", name, 0, 0, dates=() if excludes else never, weekdays=WEEKDAYS if excludes else (), version=version
        )

    async def change() -> None:
        assert await CALENDAR_RECORDS.put(crowd.store, calendar("closed", 1, excludes=True))
        assert await CALENDAR_RECORDS.put(crowd.store, calendar("open", 1, excludes=False))
        await asyncio.sleep(100.0)
        assert {call.invocation.timer_id for call in crowd.receivers.calls} == {"excluded"}
        assert await CALENDAR_RECORDS.put(crowd.store, calendar("closed", 2, excludes=False))
        assert await CALENDAR_RECORDS.put(crowd.store, calendar("open", 2, excludes=True))

    crowd.run(250, change)
    called: dict[str, list[int]] = {}
    for call in crowd.receivers.calls:
        called.setdefault(call.invocation.timer_id, []).append((call.at_us - EPOCH_US) // SECOND)
    assert called == {"excluded": [5, 30, 60, 90], "allowed": [120, 150, 180, 210, 240]}


class HesitantCrowd(Crowd):
    """A commit, or what it reads, takes `takes_s`, and then fails if it `fails`."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self.takes_s, self.fails = 0.0, False
        self._apply, self._fetch = self.store.apply, self.store.fetch
        self.store.apply, self.store.fetch = self._applied, self._fetched  # type: ignore[method-assign]

    async def _applied(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        await self._hesitate()
        return await self._apply(batches)

    async def _fetched(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        await self._hesitate()
        return await self._fetch(shard_id, uuids)

    async def _hesitate(self) -> None:
        takes_s, self.takes_s = self.takes_s, 0.0
        if takes_s:
            await asyncio.sleep(takes_s)
            if self.fails:
                raise StoreUnavailable("away")

    def accept(self, shard: int, op: WriteOp, deadline_s: float | None = None) -> None:
        """A client's write, now."""
        op.deadline_us = None if deadline_s is None else self.clock.boottime_us() + int(deadline_s * SECOND)
        self.supervisor.shards[shard].accept(op)


@each("takes_s, fails, reads", ((0.3, True, True), (0.3, True, False), (0.3, False, False), (2.9, False, False)))
def test_an_occurrence_that_waits_for_a_change_fires_when_that_is_refused(
    takes_s: float, fails: bool, reads: bool
) -> None:
    """A pause is accepted just before the instant. Then what its batch reads fails, or the batch itself, or the pause expires
    while another shard's batch is written: before its own is assembled, or while that lasts."""
    crowd = HesitantCrowd(shards=2, lanes=1)
    keep(crowd, "s", Definition(every_us=600 * SECOND, anchor=EPOCH_US + 5 * SECOND), 5)

    async def pause() -> None:
        await asyncio.sleep(4.9 - crowd.loop.time())
        crowd.takes_s, crowd.fails = takes_s, fails
        other = WriteOp(OpKind.UPDATE, timer_uuid("a", "t"), "a", changes=Changes(description="other"))
        if not fails:
            crowd.create("t", "fine", 900, shard=1)
            await asyncio.sleep(0.01)
        if reads:
            crowd.accept(0, other)
        pause = WriteOp(OpKind.SCHEDULE, schedule_uuid("a", "s"), "a", change=Pause())
        crowd.accept(0, pause, None if fails else 0.2)

    crowd.run(60, pause)
    (call,) = crowd.receivers.calls
    assert 5 * SECOND <= call.at_us - EPOCH_US < 6.5 * SECOND


def test_a_late_schedule_whose_time_zone_is_unknown_here_is_suspended_and_stops_nothing() -> None:
    """As after an upgrade or a rollback to other time zones. One is due when the node starts, one while it runs beside a
    shard that is woken at the same instant, and one waits; the passes over all schedules read them, too."""
    crowd = Crowd(shards=2)
    unknown = Definition(cron="0 0 * * * *", time_zone="Etc/Nowhere")
    late = keep(crowd, "late", unknown, -5, tzdata="2000.1")
    keep(crowd, "ahead", unknown, 900, tzdata="2000.1")
    broken = keep(crowd, "expression", Definition(cron="no expression"), 20, tzdata="2000.1")
    crowd.keep("old", "fine", -5)
    for shard in (0, 1):
        crowd.keep(f"same{shard}", "fine", 20, shard=shard)

    crowd.run(60)
    called = {call.invocation.timer_id: (call.at_us - EPOCH_US) // SECOND for call in crowd.receivers.calls}
    assert called.keys() == {"old", "same0", "same1"} and called["same0"] == called["same1"] == 20
    live = crowd.store._shards[0].live
    reason = "bad_record: ValueError: is not an IANA time zone"
    assert (live[late].suspended or "").startswith(reason)
    assert (live[broken].suspended or "").startswith("bad_record: ValueError: ")
    suspended = [event for event in crowd.events if isinstance(event, TimerSuspended)]
    assert {event.uuid for event in suspended} == {late, broken}
