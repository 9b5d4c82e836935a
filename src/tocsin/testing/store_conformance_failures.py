"""Store conformance: failure rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.model.timer import Status
from tocsin.ports.store import Applied, FailurePlace, FailureRow, Found, ListQuery, ShardBatch, Store, schedules_of
from tocsin.testing.store_conformance_base import (
    ALICE,
    StoreSuite,
    claimed,
    failure,
    finished,
    loaded,
    row,
    run,
    uuid_of,
)


async def failures(store: Store, shard_id: int = 0, *, limit: int = 100, descending: bool = False) -> list[FailureRow]:
    """All failure rows of a shard, read page by page."""
    rows: list[FailureRow] = []
    after: FailurePlace | None = None
    while True:
        page = await store.failures(shard_id, after, limit, descending=descending)
        assert len(page) <= limit
        rows += page
        if len(page) < limit:
            return rows
        after = page[-1].place


class FailureConformance(StoreSuite):
    """Failure rows: written with what failed, listed in the order of their instants, removed once they are dealt with."""

    @pytest.mark.parametrize("limit", [1, 2, 100])
    async def test_failures_are_listed_in_both_directions(self, store: Store, limit: int) -> None:
        batch, elsewhere = await claimed(store), await claimed(store, 1)
        assert await failures(store, limit=limit) == await failures(store, 2, limit=limit) == []
        instants = [-(2**63), -1, 0, 5, 5, 5, 2**63 - 1]
        rows = [failure(row(9 - number, number), at) for number, at in enumerate(instants)]
        # Two ends of one timer at one instant, and bytes that sort unsigned.
        rows += [failure(row(7), 5), failure(row(0, uuid=b"\xff" * 16), 5), failure(row(0, uuid=b"\x7f" * 16), 5)]
        other = failure(row(1), 5)
        await store.apply([replace(batch, failures=rows), replace(elsewhere, failures=[other])])
        rows.sort(key=lambda each: each.place)
        assert await failures(store, limit=limit) == rows
        assert await failures(store, limit=limit, descending=True) == rows[::-1]
        assert await failures(store, 1, limit=limit) == [other]

    async def test_the_values_of_failures_round_trip(self, store: Store) -> None:
        batch = await claimed(store)
        widest = "\U0001f514"
        of = row(1, -(2**63), namespace=schedules_of("n" * 255), timer_id=widest * 255)
        rows = [
            failure(of, 1, widest * 400 + "\x1fHTTP 500", expires_at=2**62),
            failure(row(2, 2, timer_id='back\\slash" %'), 2, "http://a/é'\x1f"),
        ]
        await store.apply([replace(batch, failures=rows)])
        assert await failures(store) == rows

    async def test_a_failure_that_is_written_twice_is_one(self, store: Store) -> None:
        batch = await claimed(store)
        rows = [failure(row(1), 3), failure(row(2), 4)]
        for _ in range(2):
            await store.apply([replace(batch, failures=rows)])
        assert await failures(store) == rows

    async def test_failures_are_written_and_resolved_with_the_rest_of_a_batch(self, store: Store) -> None:
        batch = await claimed(store)
        done, recurring = row(1, 10), row(2, 20)
        rows = [failure(done, 1), failure(recurring, 2), failure(row(1), 3)]
        parts = replace(batch, upserts=[recurring], history=[finished(done)], runs=[run(recurring)], failures=rows)
        assert await store.apply([parts]) == [Applied.DURABLE]
        resolved = [(done.uuid, done.generation), (uuid_of(7), done.generation), (done.uuid, row(1).generation)]
        again = row(1, 30)
        assert await store.apply([replace(batch, upserts=[again], resolved=resolved)]) == [Applied.DURABLE]
        assert await failures(store) == rows[1:]
        assert await store.fetch(0, [done.uuid]) == {done.uuid: Found(again, finished(done))}
        await store.apply([replace(batch, resolved=[(each.uuid, each.generation) for each in rows])])
        assert await failures(store) == []

    async def test_a_row_resolves_any_number_of_failures_of_its_uuid(self, store: Store) -> None:
        batch = await claimed(store)
        state, kept = row(1, 10, namespace=schedules_of("default")), failure(row(2))
        rows = [failure(row(1), at) for at in range(100)]
        for part in (rows[:40], rows[40:80], [*rows[80:], kept]):
            assert await store.apply([replace(batch, failures=part)]) == [Applied.DURABLE]
        resolved = [(each.uuid, each.generation) for each in rows]
        assert await store.apply([replace(batch, upserts=[state], resolved=resolved)]) == [Applied.DURABLE]
        assert await failures(store) == [kept]
        assert await loaded(store) == [state]

    async def test_failures_of_a_stale_batch_have_no_effect(self, store: Store) -> None:
        batch = await claimed(store)
        kept = failure(row(1))
        await store.apply([replace(batch, failures=[kept])])
        stale = ShardBatch(0, 2, ALICE, failures=[failure(row(2))], resolved=[(kept.uuid, kept.generation)])
        assert await store.apply([stale]) == [Applied.OWNERSHIP_LOST]
        assert await failures(store) == [kept]

    async def test_failures_are_removed_at_their_places(self, store: Store) -> None:
        batch, elsewhere = await claimed(store), await claimed(store, 1)
        rows = [failure(row(number), number) for number in range(1, 6)]
        await store.apply([replace(batch, failures=rows), replace(elsewhere, failures=rows)])
        await store.remove_failures(0, [])
        await store.remove_failures(0, [rows[0].place, rows[3].place, failure(row(8)).place])
        await store.remove_failures(2, [rows[1].place])
        assert await failures(store) == [rows[1], rows[2], rows[4]]
        assert await failures(store, 1) == rows

    @pytest.mark.parametrize("number", [1, 33, 513])
    async def test_batches_with_any_number_of_failures_are_complete(self, store: Store, number: int) -> None:
        batch = await claimed(store)
        states = [row(i) for i in range(1, number + 1)]
        rows = [failure(each, at) for at, each in enumerate(states)]
        await store.apply([replace(batch, history=[finished(each) for each in states], failures=rows)])
        assert await failures(store) == rows
        await store.remove_failures(0, [each.place for each in rows[::2]])
        assert await failures(store) == rows[1::2]
        await store.apply([replace(batch, resolved=[(each.uuid, each.generation) for each in rows])])
        assert await failures(store) == []

    async def test_failures_are_purged_after_their_retention(self, store: Store) -> None:
        batch = await claimed(store)
        states = [row(number) for number in range(1, 4)]
        rows = [failure(each, 1, expires_at=100 + number) for number, each in enumerate(states)]
        history = [finished(each, expires_at=101) for each in states]
        await store.apply([replace(batch, history=history, failures=rows)])
        self.require_purge(store)
        assert await store.purge_history(101, 4) == 4
        assert await store.purge_history(101, 4) == 1
        assert await failures(store) == rows[2:]
        assert await store.purge_history(1_000, 10) == 1
        assert await failures(store) == []

    async def test_forget_removes_all_but_the_live_rows_of_timers(self, store: Store) -> None:
        batch, elsewhere = await claimed(store), await claimed(store, 1)
        live, gone, other = row(1, 50), row(2), row(3)
        history = [finished(row(1, 10)), finished(gone), finished(row(2, 20)), finished(other)]
        runs = [run(row(1, 20)), run(row(2, 30)), run(row(2, 40)), run(row(3, 30))]
        rows = [failure(row(1, 10), 3), failure(gone, 4), failure(row(2, 40), 5), failure(other, 6)]
        written = replace(batch, upserts=[live], history=history, runs=runs, failures=rows)
        await store.apply([written, replace(elsewhere, history=[finished(gone)], failures=[failure(gone, 4)])])
        for _ in range(2):
            await store.forget(0, [live.uuid, gone.uuid, gone.uuid, uuid_of(9)])
        await store.forget(0, [])
        await store.forget(2, [gone.uuid])
        assert await store.fetch(0, [uuid_of(i) for i in (1, 2, 3)]) == {
            live.uuid: Found(live, None),
            other.uuid: Found(None, finished(other)),
        }
        left = [await store.runs(0, uuid_of(i), None, 10) for i in (1, 2, 3)]
        assert left == [[], [], [runs[3], finished(other)]]
        assert await failures(store) == rows[3:]
        assert await failures(store, 1) == [failure(gone, 4)]
        query = ListQuery(("default",), [0], frozenset(Status))
        assert (await store.list(query)).rows == [finished(other), live]
        # A timer of the same name starts over.
        again = finished(row(2, 60))
        await store.apply([replace(batch, history=[again], failures=[failure(row(2, 60), 7)])])
        assert await store.runs(0, gone.uuid, None, 10) == [again]

    @pytest.mark.parametrize("number", [1, 33, 513])
    async def test_forget_is_complete_for_any_number_of_timers(self, store: Store, number: int) -> None:
        batch = await claimed(store)
        states = [row(i) for i in range(1, number + 1)]
        ended = [finished(each) for each in states]
        await store.apply([replace(batch, history=ended, failures=[failure(each) for each in states])])
        await store.forget(0, [each.uuid for each in states[1:]])
        assert await store.fetch(0, [each.uuid for each in states]) == {states[0].uuid: Found(None, ended[0])}
        assert await failures(store) == [failure(states[0])]
