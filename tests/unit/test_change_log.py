"""What a node's store logs while it is transferred, or need not log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from tocsin.ports.records import Records
from tocsin.ports.store import Store
from tocsin.server.transfer_log import ChangeLog
from tocsin.server.transfer_mark import TransferMark, put_mark, remove_mark
from tocsin.server.transfer_watch import TransferWatch
from tocsin.stores.memory import MemoryStore

READS = {
    "now", "facts", "shards", "members", "load", "fetch", "list", "list_schedules", "list_all_schedules", "runs", "ends",
    "failures", "record", "records", "records_versions",
}  # fmt: skip
#: They write what each store has of its own, and records, which the transfer copies all once more in the pause.
NOT_LOGGED = {"open", "close", "release", "heartbeat", "forget_member", "put_record", "delete_records"}


def test_each_method_of_a_store_that_changes_its_rows_is_logged() -> None:
    methods = {name for port in (Store, Records) for name in vars(port) if name[0] != "_" and name != "capabilities"}
    assert methods - READS - NOT_LOGGED <= vars(ChangeLog).keys()
    assert methods >= READS | NOT_LOGGED


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.remove_failures(0, []),
        lambda log: log.forget(0, []),
        lambda log: log.purge_history(0, 1),
        lambda log: log.trim_runs(0, b"", 1, 1),
    ],
    ids=["remove_failures", "forget", "purge_history", "trim_runs"],
)
async def test_not_everything_is_logged_while_a_call_that_was_not_goes_on(
    call: Callable[[ChangeLog], Awaitable[Any]],
) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    class Slow:
        """A store whose calls end when they may."""

        def __getattr__(self, name: str) -> Any:
            async def wait(*args: Any) -> None:
                begun.set()
                await end.wait()

            return wait

    log = ChangeLog(cast("Store", Slow()), b"")
    under_way = asyncio.ensure_future(call(log))
    await begun.wait()
    log.on = True
    assert not await log.settled()
    end.set()
    await under_way
    assert await log.settled()


async def test_a_transfer_that_nobody_ends_is_reported_each_hour() -> None:
    store, now_s = MemoryStore(), [5.0]
    await store.open(1)
    await put_mark(store, TransferMark("source", "ab" * 16, "b", 1, phase="copying"))
    watch = TransferWatch(ChangeLog(cast("Store", store), b"n" * 16), list, lambda: None, 1.0, lambda: now_s[0])

    async def reported(*at_s: float) -> list[str]:
        with capture_logs() as lines:
            for now_s[0] in at_s:
                assert not await watch._look()
        return [line["remedy"] for line in lines if line["log_level"] == "warning"]

    assert await reported(5, 6, 3_604) == []
    (remedy,) = await reported(3_605, 3_606, 7_204)
    assert "tocsin transfer --cancel" in remedy
    assert len(await reported(7_205, 10_805)) == 2
    await remove_mark(store)
    # The first look may come before it is known.
    await reported(10_806)
    assert await reported(20_000, 30_000) == []
