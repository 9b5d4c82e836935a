"""A transfer under traffic that was canceled: the next one goes on with nothing of it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import cast

import pytest

from tests.conformance.test_transfer import SOURCE_SHARDS, Killed, filled, side, unseen
from tests.conformance.test_transfer_online import (
    Beside,
    assert_moved,
    begun,
    impatient,
    moved,
    no_calls,
    refuse_nothing,
)
from tocsin.administration import encoded
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.ports.store import Applied, ShardBatch, Store
from tocsin.server import transfer_online
from tocsin.server.transfer_log import forget_log
from tocsin.server.transfer_mark import TransferRefused, read_mark, remove_mark
from tocsin.server.transfer_online import OnlineTransfer
from tocsin.stores.memory import MemoryStore
from tocsin.timers.jobs import JOBS

__all__ = ["impatient"]


async def test_a_canceled_transfer_goes_on_neither_itself_nor_from_what_it_has_copied() -> None:
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 5, 40)
    await target.open(3)
    copied = None
    while copied is None or not (copied.copied or copied.place):
        sides = [cast("Store", Beside(each, server, [120])) for each in (source, target)]
        with pytest.raises(Killed):
            await OnlineTransfer(
                side(sides[0], SOURCE_SHARDS, "a"), side(sides[1], 3, "b"), unseen, no_calls, refuse_nothing
            ).run()
        copied = await read_mark(target)
    await remove_mark(source)
    await forget_log(source)
    with pytest.raises(TransferRefused, match="was canceled"):
        await OnlineTransfer(
            side(source, SOURCE_SHARDS, "a"), side(target, 3, "b"), unseen, no_calls, refuse_nothing
        ).run()


async def test_a_canceled_transfer_does_not_go_on_with_rows_that_were_not_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Copying(MemoryStore):
        """A target whose transfer is killed by the first rows."""

        async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
            await super().apply(batches)
            raise Killed

    source, target = MemoryStore(), Copying()
    await filled(source, timers=40, random_=random.Random(1))
    await target.open(3)
    sides = side(source, SOURCE_SHARDS, "a"), side(target, 3, "b")
    monkeypatch.setattr(transfer_online, "_NOTED_ROWS", 1_000)
    with pytest.raises(Killed):
        await OnlineTransfer(*sides, unseen, no_calls, refuse_nothing).run()
    await remove_mark(source)
    await forget_log(source)
    with pytest.raises(TransferRefused, match="was canceled"):
        await OnlineTransfer(*sides, unseen, no_calls, refuse_nothing).run()


async def test_a_canceled_transfer_goes_on_with_a_target_that_is_empty() -> None:
    class Waiting(OnlineTransfer):
        """It is killed while it waits for the servers."""

        async def _await_logging(self) -> None:
            raise Killed

    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 11, 20)
    await target.open(3)
    sides = side(source, SOURCE_SHARDS, "a"), side(target, 3, "b")
    with pytest.raises(Killed):
        await Waiting(*sides, unseen, no_calls, refuse_nothing).run()
    canceled = await read_mark(source)
    assert canceled is not None
    await remove_mark(source)
    await forget_log(source)
    # What came between both is nothing to the second: a server that had not seen the end of the first, a deleted namespace.
    await server.log.announce(canceled.transfer)
    now_us = time.time_ns() // 1_000
    job = Job("job-1", "gone", JobKind.NAMESPACE, JobAction.DELETE, RowFilter(0), now_us, now_us, JobState.COMPLETED)
    assert await source.put_record(JOBS, job.id, encoded(job), None)
    await moved(source, target, 3, server)
    await assert_moved(source, target, 3, server)
    moved_as = await read_mark(source)
    assert moved_as is not None and moved_as.transfer != canceled.transfer
