"""Store conformance: lists, history and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tocsin.model.timer import Status
from tocsin.ports.store import (
    FLOWS_SUFFIX,
    SCHEDULES_SUFFIX,
    TIMERS_END_US,
    Applied,
    HistoryRow,
    ListQuery,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    schedules_of,
)
from tocsin.testing.store_conformance_base import ALICE, StoreSuite, claimed, failure, finished, put, row, run, uuid_of

ALL = frozenset(Status)
PENDING = frozenset({Status.PENDING})
SHARDS = (0, 1, 2)


def place(listed: StoredRow | HistoryRow) -> tuple[int, bytes, bytes]:
    """A row's position in a list."""
    return (listed.execute_at, listed.uuid, listed.generation)


async def listed(store: Store, query: ListQuery) -> list[StoredRow | HistoryRow]:
    """The rows of all pages. It checks what each page promises, and that they are the same in the opposite order."""
    rows = await pages(store, query)
    if query.cursor is None:
        assert await pages(store, replace(query, descending=not query.descending)) == rows[::-1]
    return rows


async def pages(store: Store, query: ListQuery) -> list[StoredRow | HistoryRow]:
    """The rows of all pages in the order of the query. It checks what each page promises."""
    rows: list[StoredRow | HistoryRow] = []
    while True:
        page = await store.list(query)
        assert len(page.rows) <= query.limit
        assert sum(len(each.record) for each in page.rows[:-1]) < query.bytes_max
        rows += page.rows
        if page.cursor is None:
            break
        ordered = [*([query.cursor] if query.cursor else []), *map(place, page.rows[-1:]), page.cursor]
        assert ordered == sorted(ordered, reverse=query.descending)
        assert page.cursor != query.cursor
        query = replace(query, cursor=page.cursor)
    assert [place(r) for r in rows] == sorted({place(r) for r in rows}, reverse=query.descending)
    return rows


async def filled(store: Store) -> list[StoredRow | HistoryRow]:
    """Live, suspended and finished rows of two namespaces over three shards; returns those of `default`, in order."""
    rows: list[StoredRow | HistoryRow] = []
    for shard_id in SHARDS:
        batch = await claimed(store, shard_id)
        for i in range(18):
            number = 1 + shard_id * 100 + i
            namespace = "other" if i % 5 == 4 else "default"
            tags = ("even", "all") if i % 2 == 0 else ("all",)
            each = row(number, i // 3, namespace=namespace, tags=tags, timer_id=f"{'ab'[i % 2]}-{number}")
            kind = i % 7
            if kind < 3:
                batch.upserts.append(each)
            elif kind == 3:
                batch.upserts.append(each := each._replace(suspended="why"))
            else:
                status = (Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.EXPIRED)[i % 4]
                batch.history.append(finished(each, status))
            if namespace == "default":
                rows.append(each if kind < 4 else batch.history[-1])
        await store.apply([batch])
    return sorted(rows, key=place)


def status_of(each: StoredRow | HistoryRow) -> Status:
    """The status that a list filters by."""
    return each.status if isinstance(each, HistoryRow) else Status.PENDING


class ListConformance(StoreSuite):
    """Lists: filters, order and cursors."""

    async def test_an_empty_namespace_has_one_empty_page(self, store: Store) -> None:
        assert await store.list(ListQuery(("default",), SHARDS, ALL)) == ([], None)
        assert await store.list(ListQuery(("default",), (), ALL)) == ([], None)

    @pytest.mark.parametrize("limit", [1, 7, 100])
    async def test_pages_of_every_size_have_the_same_rows(self, store: Store, limit: int) -> None:
        rows = await filled(store)
        assert await listed(store, ListQuery(("default",), SHARDS, ALL, limit=limit)) == rows

    @pytest.mark.parametrize("bytes_max", [1, 400])
    async def test_page_of_a_list_keeps_to_its_bytes(self, store: Store, bytes_max: int) -> None:
        rows = await filled(store)
        assert await listed(store, ListQuery(("default",), SHARDS, ALL, bytes_max=bytes_max)) == rows

    @pytest.mark.parametrize("scan_rows_max", [1, 5, 20])
    async def test_bounded_scans_still_reach_everything(self, store: Store, scan_rows_max: int) -> None:
        rows = await filled(store)
        query = ListQuery(("default",), SHARDS, ALL, tags=("even",), limit=10, scan_rows_max=scan_rows_max)
        assert await listed(store, query) == [r for r in rows if "even" in r.tags]

    async def test_a_scan_without_matches_stops_and_continues(self, store: Store) -> None:
        await claimed(store)
        await put(store, *(row(i, i, namespace="other") for i in range(1, 200)), mine := row(500, 500))
        page = await store.list(ListQuery(("default",), (0,), PENDING, limit=5, scan_rows_max=20))
        assert page.rows == []
        assert page.cursor is not None
        assert await listed(store, ListQuery(("default",), (0,), PENDING, limit=5, scan_rows_max=20)) == [mine]

    @pytest.mark.parametrize(
        "statuses",
        [PENDING, frozenset({Status.EXPIRED}), frozenset({Status.COMPLETED, Status.CANCELED}), ALL - PENDING, ALL],
        ids=lambda statuses: "+".join(sorted(statuses)),
    )
    async def test_status_filters(self, store: Store, statuses: frozenset[Status]) -> None:
        rows = await filled(store)
        expected = [r for r in rows if status_of(r) in statuses]
        assert await listed(store, ListQuery(("default",), SHARDS, statuses, limit=4)) == expected

    async def test_suspended_rows_count_as_pending(self, store: Store) -> None:
        await claimed(store)
        await put(store, one := row(1, 1, suspended="why"), two := row(2, 0))
        assert await listed(store, ListQuery(("default",), (0,), PENDING)) == [two, one]

    async def test_tags_must_all_be_present_and_whole(self, store: Store) -> None:
        await claimed(store)
        rows = [row(1, 1, tags=("red", "big")), row(2, 2, tags=("re", "bigger")), row(3, 3), row(4, 4, tags=("big",))]
        await put(store, *rows)

        async def tagged(*tags: str) -> Sequence[StoredRow | HistoryRow]:
            return await listed(store, ListQuery(("default",), (0,), ALL, tags=tags))

        assert await tagged("big", "red") == [rows[0]]
        assert await tagged("big") == [rows[0], rows[3]]
        assert await tagged("re") == [rows[1]]
        assert await tagged("none") == []

    async def test_id_prefix_filters(self, store: Store) -> None:
        await claimed(store)
        rows = [
            row(1, 1, timer_id="a%b-1"),
            row(2, 2, timer_id="a%b-2"),
            row(3, 3, timer_id="aXb"),
            row(4, 4, timer_id="é1"),
        ]
        await put(store, *rows)
        assert await listed(store, ListQuery(("default",), (0,), ALL, id_prefix="a%b")) == rows[:2]
        assert await listed(store, ListQuery(("default",), (0,), ALL, id_prefix="A")) == []
        assert await listed(store, ListQuery(("default",), (0,), ALL, id_prefix="é")) == rows[3:]
        assert await listed(store, ListQuery(("default",), (0,), ALL, id_prefix="aXbY")) == []

    async def test_execute_range_includes_its_start_and_excludes_its_end(self, store: Store) -> None:
        rows = await filled(store)
        query = ListQuery(("default",), SHARDS, ALL, execute_after=3, execute_before=6, limit=5)
        assert await listed(store, query) == [r for r in rows if 3 <= r.execute_at < 6]
        assert await listed(store, replace(query, execute_after=6)) == []

    async def test_only_the_named_shards_are_read(self, store: Store) -> None:
        rows = await filled(store)
        one = await listed(store, ListQuery(("default",), (1,), ALL))
        assert one == [r for r in rows if 100 < int.from_bytes(r.uuid, "big") <= 200]
        assert await listed(store, ListQuery(("default",), (1, 1, 6), ALL)) == one

    async def test_all_states_of_one_timer_are_listed(self, store: Store) -> None:
        batch = await claimed(store)
        first, second, live = row(1, 10), row(1, 10), row(1, 10)
        history = [finished(first, Status.FAILED), finished(second)]
        await store.apply([replace(batch, upserts=[live], history=history)])
        for limit in (1, 2, 3):
            assert await listed(store, ListQuery(("default",), (0,), ALL, limit=limit)) == [*history, live]

    @pytest.mark.parametrize("limit", [1, 7, 100])
    async def test_lists_of_several_namespaces_have_their_timers_in_one_order(self, store: Store, limit: int) -> None:
        await filled(store)
        await put(store, row(900, 1, namespace=schedules_of("default")))
        done = finished(row(901, 2, namespace=schedules_of("other")))
        await store.apply([ShardBatch(0, 1, ALICE, history=[done])])
        shards = SHARDS if limit > 1 else SHARDS[:2]
        both = await listed(store, ListQuery(("default", "none", "other"), shards, ALL, limit=limit))
        assert len(both) == 18 * len(shards)
        assert {each.namespace for each in both} == {"default", "other"}
        assert await listed(store, ListQuery(None, shards, ALL, limit=limit)) == both
        assert await listed(store, ListQuery((), shards, ALL, limit=limit)) == []
        query = ListQuery(None, shards, PENDING, ("even",), "a-1", execute_after=1, limit=limit, scan_rows_max=5)
        assert await listed(store, query) == [
            each
            for each in both
            if status_of(each) is Status.PENDING
            and "even" in each.tags
            and each.timer_id.startswith("a-1")
            and each.execute_at >= 1
        ]

    async def test_descending_list_begins_with_the_last_rows(self, store: Store) -> None:
        rows = await filled(store)
        query = ListQuery(("default",), SHARDS, ALL, limit=7, descending=True)
        page = await store.list(query)
        assert page.rows[:1] == rows[-1:]
        assert page.rows == rows[::-1][: len(page.rows)]
        assert (await store.list(replace(query, execute_before=3))).rows[0].execute_at == 2

    @pytest.mark.parametrize("descending", [False, True])
    async def test_cursor_is_stable_while_rows_change(self, store: Store, descending: bool) -> None:
        rows = await filled(store)
        query = ListQuery(("default",), SHARDS, ALL, limit=20, descending=descending)
        page = await store.list(query)
        await put(store, row(900, 100 if descending else -1))
        await store.apply([ShardBatch(0, 1, ALICE, deletes=[r.uuid for r in page.rows if isinstance(r, StoredRow)])])
        rest = await listed(store, replace(query, cursor=page.cursor))
        assert [*page.rows, *rest] == (rows[::-1] if descending else rows)


class HistoryConformance(StoreSuite):
    """History: finished timers and runs until their retention ends."""

    async def test_writing_a_history_row_twice_leaves_one(self, store: Store) -> None:
        batch = await claimed(store)
        done = finished(row(1, 10))
        for _ in range(2):
            await store.apply([replace(batch, history=[done])])
        assert await listed(store, ListQuery(("default",), (0,), ALL)) == [done]
        changed = done._replace(execute_at=12, status=Status.FAILED, expires_at=50)
        await store.apply([replace(batch, history=[changed])])
        assert await listed(store, ListQuery(("default",), (0,), ALL)) == [changed]

    async def test_history_behind_all_timers_is_in_lists_that_reach_there(self, store: Store) -> None:
        batch, ended = await claimed(store), finished(row(1, 10))
        tokens = finished(row(2))._replace(execute_at=TIMERS_END_US, namespace="default" + FLOWS_SUFFIX)
        await store.apply([replace(batch, history=[ended, tokens])])
        both = ListQuery(("default", tokens.namespace), (0,), ALL)
        assert await listed(store, both) == [ended, tokens]
        assert await listed(store, replace(both, execute_before=TIMERS_END_US)) == [ended]
        assert await listed(store, replace(both, execute_after=TIMERS_END_US)) == [tokens]
        assert (await store.fetch(0, [tokens.uuid]))[tokens.uuid].finished == tokens

    async def test_purge_removes_expired_rows(self, store: Store) -> None:
        batch = await claimed(store)
        rows = [finished(row(i, i), expires_at=100 + i) for i in range(1, 11)]
        await store.apply([replace(batch, history=rows, upserts=[live := row(99, 1)])])
        assert await store.purge_history(100, 50) == 0
        self.require_purge(store)
        assert await store.purge_history(104, 50) == 4
        assert await listed(store, ListQuery(("default",), (0,), ALL)) == [live, *rows[4:]]
        assert await store.purge_history(1_000, 4) == 4
        assert await store.purge_history(1_000, 4) == 2
        assert await store.purge_history(1_000, 4) == 0
        assert await store.fetch(0, [uuid_of(10)]) == {}

    async def test_purge_uses_the_latest_expiry(self, store: Store) -> None:
        batch = await claimed(store)
        done = finished(row(1), expires_at=100)
        await store.apply([replace(batch, history=[done])])
        await store.apply([replace(batch, history=[done._replace(expires_at=500)])])
        assert await store.purge_history(200, 10) == 0
        assert (await store.fetch(0, [uuid_of(1)]))[uuid_of(1)].finished is not None

    async def test_runs_come_newest_first_from_both_kinds_of_rows(self, store: Store) -> None:
        batch, elsewhere = await claimed(store), await claimed(store, 1)
        states = [row(1, i) for i in range(6)]
        runs = [run(states[0]), run(states[3], '{"answer":"ü"}'.encode()), run(states[4], b"\xff")]
        ends = [finished(states[1]), finished(states[2], Status.FAILED)]
        await store.apply([replace(batch, runs=runs[:2]), replace(elsewhere, runs=[run(row(1))])])
        await store.apply([replace(batch, upserts=[states[5]], runs=[runs[2], run(row(2))], history=ends[:1])])
        await store.apply([replace(batch, history=ends[1:])])
        expected: list[HistoryRow | RunRow] = [runs[2], runs[1], ends[1], ends[0], runs[0]]
        assert await store.runs(0, uuid_of(1), None, 10) == expected
        assert await store.runs(0, uuid_of(1), None, 2) == expected[:2]
        assert await store.runs(0, uuid_of(1), expected[1].generation, 2) == expected[2:4]
        assert await store.runs(0, uuid_of(1), expected[-1].generation, 2) == []
        assert await store.runs(0, uuid_of(3), None, 10) == await store.runs(2, uuid_of(1), None, 10) == []

    @pytest.mark.parametrize("bytes_max", [1, 2_500, 1_000_000])
    async def test_page_of_runs_keeps_to_its_bytes(self, store: Store, bytes_max: int) -> None:
        batch = await claimed(store)
        states = [row(1, i, record=b"s" * 1_000) for i in range(40)]
        ends = [finished(each) if i % 3 else run(each, each.record) for i, each in enumerate(states)]
        for each in ends:
            # One by one: a store may have no room for all of one timer's rows in a batch.
            one = replace(batch, history=[each]) if isinstance(each, HistoryRow) else replace(batch, runs=[each])
            assert await store.apply([one]) == [Applied.DURABLE]
        found: list[HistoryRow | RunRow] = []
        while page := await store.runs(0, uuid_of(1), found[-1].generation if found else None, 50, bytes_max):
            assert sum(len(each.record) for each in page[:-1]) < bytes_max
            found += page
        assert found == ends[::-1]

    async def test_writing_a_run_twice_leaves_the_last_state(self, store: Store) -> None:
        batch = await claimed(store)
        former = run(row(1), expires_at=100)
        await store.apply([replace(batch, runs=[former])])
        await store.apply([replace(batch, runs=[latter := former._replace(record=b"{}", expires_at=500)])])
        assert await store.runs(0, uuid_of(1), None, 10) == [latter]
        assert await store.purge_history(200, 10) == 0
        assert await store.runs(0, uuid_of(1), None, 10) == [latter]

    async def test_purge_removes_expired_runs(self, store: Store) -> None:
        batch = await claimed(store)
        runs = [run(row(i), expires_at=100 + i) for i in range(1, 6)]
        await store.apply([replace(batch, runs=runs, history=[finished(row(6), expires_at=102)])])
        self.require_purge(store)
        assert await store.purge_history(102, 2) == 2
        assert await store.purge_history(102, 2) == 1
        left = [await store.runs(0, uuid_of(i), None, 2) for i in range(1, 7)]
        assert left == [[], [], [runs[2]], [runs[3]], [runs[4]], []]
        assert await store.purge_history(1_000, 10) == 3

    async def test_trim_leaves_the_newest_runs_of_one_timer(self, store: Store) -> None:
        batch, elsewhere = await claimed(store), await claimed(store, 1)
        runs = [run(row(1, i)) for i in range(6)]
        ended, other = finished(row(1, 9)), run(row(2))
        await store.apply([replace(batch, runs=[other], history=[ended])])
        for each in runs:
            await store.apply([replace(batch, runs=[each]), replace(elsewhere, runs=[each])])
        assert await store.trim_runs(0, uuid_of(1), 6, 10) == 0
        assert await store.trim_runs(0, uuid_of(1), 2, 3) == 3
        assert await store.runs(0, uuid_of(1), None, 10) == [ended, *reversed(runs[3:])]
        assert await store.trim_runs(0, uuid_of(1), 2, 3) == 1
        assert await store.runs(0, uuid_of(1), None, 10) == [ended, *reversed(runs[4:])]
        assert await store.trim_runs(0, uuid_of(2), 1, 3) == await store.trim_runs(0, uuid_of(3), 1, 3) == 0
        assert await store.trim_runs(2, uuid_of(1), 1, 3) == 0
        assert await store.runs(0, uuid_of(2), None, 10) == [other]
        assert await store.runs(1, uuid_of(1), None, 10) == [*reversed(runs)]

    async def test_runs_of_a_stale_batch_have_no_effect(self, store: Store) -> None:
        await claimed(store)
        assert await store.apply([ShardBatch(0, 2, ALICE, runs=[run(row(1))])]) == [Applied.OWNERSHIP_LOST]
        assert await store.runs(0, uuid_of(1), None, 10) == []

    @pytest.mark.parametrize("rows", [1, 33, 513])
    async def test_batches_with_any_number_of_runs_are_complete(self, store: Store, rows: int) -> None:
        batch = await claimed(store)
        states = [row(i) for i in range(1, rows + 1)]
        await store.apply([replace(batch, upserts=states, runs=[run(each) for each in states])])
        for number in {1, rows}:
            assert await store.runs(0, uuid_of(number), None, 2) == [run(states[number - 1])]
        assert await store.purge_history(1_000, 2_000) in (0, rows)


async def every_end(store: Store, shard_id: int, limit: int, bytes_max: int = 2**20) -> list[HistoryRow | RunRow]:
    """The rows of all pages of a shard's ends. It checks what each page promises."""
    rows: list[HistoryRow | RunRow] = []
    cursor = None
    while True:
        page = await store.ends(shard_id, cursor, limit, bytes_max)
        assert len(page.rows) <= limit
        assert sum(len(each.record) for each in page.rows[:-1]) < bytes_max
        rows += page.rows
        if page.cursor is None:
            return rows
        assert page.cursor != cursor
        cursor = page.cursor


class EndsConformance(StoreSuite):
    """Everything that has ended in a shard."""

    @pytest.mark.parametrize("limit", [1, 2, 5, 1_000])
    async def test_every_end_of_a_shard_is_on_one_page(self, store: Store, limit: int) -> None:
        expected = await self._written(store)
        for shard_id in SHARDS:
            found = await every_end(store, shard_id, limit)
            assert len(found) == len(expected[shard_id])
            assert set(found) == expected[shard_id]

    async def test_a_page_of_ends_has_a_limit_in_bytes(self, store: Store) -> None:
        expected = await self._written(store)
        for bytes_max in (1, 20, 200):
            assert set(await every_end(store, 0, 1_000, bytes_max)) == expected[0]

    async def _written(self, store: Store) -> dict[int, set[HistoryRow | RunRow]]:
        """History rows and run rows of several names, among live and suspended rows and failures."""
        expected: dict[int, set[HistoryRow | RunRow]] = {}
        expires_at = await store.now() + 86_400_000_000
        for shard_id in SHARDS[:2]:
            batch = await claimed(store, shard_id)
            names = ["default", schedules_of("default"), "other/notify", "a"]
            uuids = [uuid_of(1), b"run" + bytes(13), b"fail" + bytes(12), b"shard" + bytes(11), b"\xff" * 16]
            for number, uuid in enumerate(uuids):
                name, record = names[number % len(names)], b'{"n":%d}' % number
                for turn in range(number % 3 + 1):
                    live = row(number, turn - 1, uuid=uuid, namespace=name, record=record, tags=("t",) * (turn % 2))
                    batch.history.append(finished(live, Status.FAILED, at=turn, expires_at=expires_at))
                    batch.runs.append(run(row(number, uuid=uuid, record=record), record, expires_at=expires_at + turn))
                    batch.failures.append(failure(live, expires_at=expires_at))
                batch.upserts.append(row(number, 5, uuid=uuid, namespace=name))
            batch.runs.append(run(row(0, uuid=bytes(16)), expires_at=expires_at))
            batch.upserts.append(row(99, 3, suspended="why"))
            assert await store.apply([batch]) == [Applied.DURABLE]
            expected[shard_id] = {*batch.history, *batch.runs}
        return expected | {shard_id: set() for shard_id in SHARDS[2:]}


class ScheduleConformance(StoreSuite):
    """Schedules: their rows are listed by id, and not among timers."""

    async def test_schedules_are_listed_by_the_bytes_of_their_ids(self, store: Store) -> None:
        # The last two are as long as ids may be.
        ids = ["A", "a", "a ", "a%", "ab", "z", "\u00e9", "\uffee", "\U0001f600" * 254, "\U0001f600" * 255]
        rows = []
        for shard_id in SHARDS:
            batch = await claimed(store, shard_id)
            for number, timer_id in enumerate(ids):
                if number % len(SHARDS) == shard_id:
                    suspended = "schedule:paused" if number % 2 else None
                    live = row(
                        1 + number, number, namespace=schedules_of("default"), timer_id=timer_id, suspended=suspended
                    )
                    batch.upserts.append(live)
                    rows.append(live)
            batch.upserts.append(row(100, 1, timer_id="timer"))
            batch.upserts.append(row(101, 1, namespace=schedules_of("other"), timer_id="b"))
            await store.apply([batch])
        rows.sort(key=lambda each: each.timer_id.encode())
        assert await store.list_schedules("default", SHARDS, "", 100) == rows
        assert await store.list_schedules("default", SHARDS, "", 2) == rows[:2]
        assert await store.list_schedules("default", SHARDS, rows[3].timer_id, 3) == rows[4:7]
        timers = await listed(store, ListQuery(("default",), SHARDS, ALL))
        assert [each.timer_id for each in timers] == ["timer"] * len(SHARDS)
        assert await store.purge_history(2**62, 100) == 0
        assert await store.list_schedules("default", SHARDS, rows[-2].timer_id, 3) == rows[-1:]

    @pytest.mark.parametrize("limit", [1, 2, 100])
    async def test_all_schedules_are_listed_by_namespace_and_id(self, store: Store, limit: int) -> None:
        names, ids = ["a", "a.b", "A", "b"], ["x", "a", "\u00e9"]
        rows = {}
        for shard_id in SHARDS:
            batch = await claimed(store, shard_id)
            # The ids of a namespace are in several shards.
            for number, name in enumerate(names):
                live = row(
                    1 + number, number, namespace=schedules_of(name), timer_id=ids[(shard_id + number) % len(ids)]
                )
                rows[live.namespace, live.timer_id] = live
                batch.upserts.append(live)
            batch.upserts.append(row(100, 1, timer_id="timer"))
            await store.apply([batch])
        found: list[StoredRow] = []
        after = None
        while page := await store.list_all_schedules(SHARDS, after, limit):
            found += page
            after = (page[-1].namespace.removesuffix(SCHEDULES_SUFFIX), page[-1].timer_id)
        assert len(found) == len(rows)
        assert {(each.namespace, each.timer_id): each for each in found} == rows
        assert list(dict.fromkeys(each.namespace for each in found)) == [each.namespace for each in found[:: len(ids)]]
        for name in names:
            of_name = [each for each in found if each.namespace == schedules_of(name)]
            assert of_name == await store.list_schedules(name, SHARDS, "", 10)

    async def test_an_ended_schedule_is_no_longer_listed(self, store: Store) -> None:
        batch = await claimed(store)
        live = row(1, 1, namespace=schedules_of("default"), timer_id="a")
        await put(store, live)
        # Its next occurrence.
        await put(store, later := live._replace(execute_at=2))
        assert await store.list_schedules("default", (0,), "", 10) == [later]
        batch.deletes.append(live.uuid)
        batch.history.append(finished(later))
        await store.apply([batch])
        assert await store.list_schedules("default", (0,), "", 10) == []
        assert await listed(store, ListQuery(("default",), (0,), ALL)) == []
        await put(store, again := row(1, 3, namespace=schedules_of("default"), timer_id="a"))
        assert await store.list_schedules("default", (0,), "", 10) == [again]
