"""Plans that newer time zones and changed calendars ask for are made again where they were not written, and where another
node has planned meanwhile, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from tocsin.model.errors import OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.model.schedule import Definition
from tocsin.ports.store import Applied, ShardBatch
from tocsin.testing.clock import EPOCH_US

from .crowd import SECOND, Crowd
from .test_schedule_upkeep import keep

ANOTHER = b"o" * 16


def daily_at(seconds: int) -> Definition:
    """Each day, so many seconds after the start."""
    local = datetime.fromtimestamp(EPOCH_US // SECOND + seconds, UTC)
    return Definition(cron=f"{local:%S %M %H} * * *", time_zone="Etc/GMT")


def fail_once(crowd: Crowd, timer_id: str, error: StoreError) -> list[StoreError]:
    """Makes the node's first write of that row fail; the list has the error from then on."""
    raised: list[StoreError] = []
    apply = crowd.store.apply

    async def failing(batches: Sequence[ShardBatch]) -> list[Applied]:
        written = {
            row.timer_id for batch in batches if batch.owner == crowd.context.incarnation for row in batch.upserts
        }
        if not raised and timer_id in written:
            raised.append(error)
            raise error
        return await apply(batches)

    crowd.store.apply = failing  # type: ignore[method-assign]
    return raised


@pytest.mark.parametrize("error", [StoreUnavailable("full"), OutcomeUnknown("the connection is gone")])
def test_a_plan_that_was_not_written_is_made_again(error: StoreError) -> None:
    crowd = Crowd(look_ahead_max_us=100 * SECOND)
    keep(crowd, "earlier", daily_at(60), 120, tzdata="2000.1")
    raised = fail_once(crowd, "earlier", error)
    crowd.run(200)
    assert raised == [error]
    assert [(call.at_us - EPOCH_US) // SECOND for call in crowd.receivers.calls] == [60]


def test_what_another_node_has_planned_meanwhile_is_checked_after_the_shard_is_claimed_again() -> None:
    """The other one has older time zones, and owns the shard for a moment. By then all rows have been checked here."""
    crowd = Crowd(look_ahead_max_us=100 * SECOND)
    keep(crowd, "own", daily_at(40), 40, tzdata="2000.1")
    keep(crowd, "of-another", daily_at(60), 120, tzdata="2000.1")
    planned = crowd._kept[0].pop()

    async def own_for_a_moment() -> None:
        await asyncio.sleep(10.0)
        epoch = crowd.store._shards[0].epoch
        assert await crowd.store.claim(0, expected_epoch=epoch, owner=ANOTHER)
        batch = ShardBatch(0, epoch + 1, ANOTHER)
        batch.upserts = [planned]
        await crowd.store.apply([batch])
        await crowd.store.release(0, epoch=epoch + 1, owner=ANOTHER)

    crowd.run(200, own_for_a_moment)
    called = {call.invocation.timer_id: (call.at_us - EPOCH_US) // SECOND for call in crowd.receivers.calls}
    assert called == {"own": 40, "of-another": 60}
