"""Which ranges a backfill may have: each of its instants is a call, and nothing ends it early but a delete."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.cases import each
from tests.unit.test_forwarded_writes import Node, timer

from tocsin.model.errors import InvalidInput
from tocsin.model.instants import US_PER_DAY
from tocsin.model.schedule import BACKFILLED_MAX, Definition
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.schedules import Schedules

MINUTE = 60_000_000


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    store = MemoryStore(SystemClock())
    await store.open(1)
    made = Node(store)
    await made.start()
    yield made
    await made.supervisor.close()


@each("definition", [Definition(cron="* * * * *"), Definition(every_us=MINUTE)])
async def test_a_range_of_very_many_instants_is_refused(node: Node, definition: Definition) -> None:
    schedules, name = Schedules(node.service), "every" if definition.cron is None else "cron"
    created = await schedules.create(timer(name), definition, paused=True)
    end = created.timer.created_at // MINUTE * MINUTE
    with pytest.raises(InvalidInput, match="more than 100,000 instants"):
        await schedules.backfill("default", name, end - 2_500 * US_PER_DAY, end)
    with pytest.raises(InvalidInput, match="more than 100,000 instants"):
        await schedules.backfill("default", name, end - (BACKFILLED_MAX + 1) * MINUTE, end)
    taken = await schedules.backfill("default", name, end - BACKFILLED_MAX * MINUTE, end)
    assert taken.backfills == 1


async def test_only_past_instants_from_the_beginning_of_a_schedule_on_count(node: Node) -> None:
    schedules = Schedules(node.service)
    now = node.clock.now_us()
    await schedules.create(timer("s"), Definition(cron="* * * * *", start_at=now - US_PER_DAY), paused=True)
    taken = await schedules.backfill("default", "s", now - 2_500 * US_PER_DAY, now + 2_500 * US_PER_DAY)
    assert taken.backfills == 1
