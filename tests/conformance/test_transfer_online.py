"""A transfer under traffic moves everything from and to every store, whatever a server changes meanwhile, and whenever it is
interrupted."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.conformance.test_transfer import (
    SOURCE_SHARDS,
    Killed,
    contents,
    filled,
    placed,
    side,
    slowly_compared,
    store,
    unseen,
)
from tocsin.administration import FLOW_RECORDS, encoded, every, put_namespace
from tocsin.model.errors import DefiniteFailure
from tocsin.model.flow import Flow, FlowLimits
from tocsin.model.ids import timer_uuid
from tocsin.model.instants import US_PER_DAY
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Status
from tocsin.ports.store import (
    KEY_MAX,
    KEY_MIN,
    Applied,
    FailureRow,
    HistoryRow,
    Member,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    generation,
)
from tocsin.server import transfer_online
from tocsin.server.transfer_log import CHANGES, ChangeLog, forget_log, logging_servers
from tocsin.server.transfer_mark import (
    PATIENCE_S,
    Patience,
    TransferMark,
    TransferPending,
    TransferRefused,
    put_mark,
    read_mark,
    refuse_transferred,
    remove_mark,
)
from tocsin.server.transfer_online import OnlineTransfer
from tocsin.server.transfer_rows import Contents
from tocsin.stores.memory import MemoryStore
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.timers.jobs import JOBS

__all__ = ["store"]

NODE = b"another-incarnat"
#: How much a server changes while the transfer makes one call: with a chance of one half it would never come to an end.
_ACTIVITY = 0.3
#: Calls of the transfer between two moments at which the server beats and reads the mark: these calls would be half of all.
_LOOKS_EVERY = 4
#: Calls of the transfer between two of those at which it is killed, in as many transfers.
_KILL_EVERY = 23


class BusyServer:
    """A server of the source that changes rows between the calls of a transfer, and does what the mark asks for."""

    def __init__(self, source: Store, random_: random.Random) -> None:
        self.source, self.random = source, random_
        self.log = ChangeLog(source, NODE)
        self.epochs: dict[int, int] = {}
        self.live: dict[bytes, tuple[int, StoredRow]] = {}
        self.failed: list[tuple[int, FailureRow]] = []
        #: Of which the ends are still to be removed.
        self.deleted: list[tuple[int, bytes]] = []
        self.number = self.steps = self.beats = self.changes = self.claims = 0
        self.logs = False

    async def start(self) -> None:
        """Claims every shard, and reads what there is."""
        self.log.on = self.logs = False
        await self._beat()
        epochs = {state.shard_id: state.epoch for state in await self.source.shards()}
        self.live.clear()
        for shard_id in range(SOURCE_SHARDS):
            epoch = await self.log.claim(shard_id, expected_epoch=epochs.get(shard_id, 0), owner=NODE)
            assert epoch is not None
            self.epochs[shard_id] = epoch
            self.claims += 1
            page = await self.log.load(shard_id, KEY_MIN, KEY_MAX, 1_000)
            suspended = await self.log.load_suspended(shard_id, KEY_MIN, 1_000)
            assert not any(row.namespace == CHANGES for row in suspended.rows)
            self.live |= {row.uuid: (shard_id, row) for row in (*page.rows, *suspended.rows)}

    async def _beat(self) -> None:
        self.beats += 1
        await self.source.heartbeat(Member(NODE, "node-a", "http://a", self.beats))

    async def step(self) -> None:
        """What it does between two calls of the transfer."""
        self.steps += 1
        if self.steps % _LOOKS_EVERY == 0:
            await self._look()
        while self.epochs and self.random.random() < _ACTIVITY:
            await self.change()

    async def _look(self) -> None:
        mark = await read_mark(self.source)
        phase = None if mark is None else mark.phase
        if not self.epochs:
            if phase == "copying":
                await self.start()
            return
        await self._beat()
        if phase == "paused":
            for shard_id, epoch in self.epochs.items():
                await self.log.release(shard_id, epoch=epoch, owner=NODE)
            self.epochs.clear()
            await self.source.forget_member(NODE)
        elif mark is not None and phase == "copying":
            self.log.on = True
            if self.logs and await self.log.settled():
                await self.log.announce(mark.transfer)
            self.logs = True

    async def change(self) -> None:
        """Writes a batch of one shard, as an engine would."""
        random_, now_us = self.random, time.time_ns() // 1_000
        self.changes += 1
        keeps_until = now_us + US_PER_DAY
        if random_.random() < 0.1 and self.failed:
            shard_id, failure = self.failed.pop(random_.randrange(len(self.failed)))
            await self.log.remove_failures(shard_id, [failure.place])
            return
        if random_.random() < 0.1 and self.deleted:
            shard_id, uuid = self.deleted.pop()
            await self.log.forget(shard_id, [uuid])
            return
        if random_.random() < 0.02:
            name = f"made-{self.changes}"
            assert await put_namespace(
                self.source, Namespace(name, random_.randint(1, SOURCE_SHARDS), 1, 1), create=True
            )
            return
        shard_id = random_.randrange(SOURCE_SHARDS)
        batch = ShardBatch(shard_id, self.epochs[shard_id], NODE)
        here = [uuid for uuid, (of, _) in self.live.items() if of == shard_id]
        for uuid in random_.sample(here, min(len(here), random_.randint(0, 4))):
            row, now = self.live[uuid][1], self._generation()
            what = random_.choice(["move", "end", "fail", "delete", "forget", "run", "suspend"])
            if what in ("move", "suspend", "run"):
                reason = "namespace paused" if what == "suspend" else None
                row = row._replace(execute_at=random_.randrange(2**45), generation=now, suspended=reason)
                batch.upserts.append(row)
                self.live[uuid] = shard_id, row
                if what == "run":
                    batch.runs.append(RunRow(uuid, self._generation(), b"run", keeps_until))
                continue
            del self.live[uuid]
            batch.deletes.append(uuid)
            if what == "forget":
                self.deleted.append((shard_id, uuid))
            elif what != "delete":
                status = Status.FAILED if what == "fail" else Status.COMPLETED
                batch.history.append(HistoryRow(*row[:7], status, now_us, keeps_until))
            if what == "fail":
                failure = FailureRow(
                    uuid, row.generation, row.namespace, row.timer_id, "cause", now_us, row.execute_at, keeps_until
                )
                batch.failures.append(failure)
                self.failed.append((shard_id, failure))
        if self.failed and random_.random() < 0.1:
            of, failure = self.failed[-1]
            if of == shard_id and all(failure.uuid != row.uuid for row in batch.failures):
                self.failed.pop()
                batch.resolved.append((failure.uuid, failure.generation))
        for _ in range(random_.randint(0, 3)):
            self._create(batch)
        assert await self.log.apply([batch]) == [Applied.DURABLE]

    def _generation(self) -> bytes:
        self.number += 1
        return generation(50, NODE, self.number)

    def _create(self, batch: ShardBatch) -> None:
        self.number += 1
        name = self.random.choice(["default", "narrow"])
        uuid = timer_uuid(name, f"new-{self.number}")
        row = StoredRow(
            self.random.randrange(2**45), uuid, self._generation(), name, f"new-{self.number}", (), b"{}", None
        )
        if placed(row, SOURCE_SHARDS, wide=SOURCE_SHARDS) == batch.shard_id:
            batch.upserts.append(row)
            self.live[uuid] = batch.shard_id, row


class Beside:
    """A store as the transfer has it: the server does something before each call, and the transfer's process may end."""

    def __init__(self, inner: Store, server: BusyServer, kill_at: list[int]) -> None:
        self._inner, self._server, self._kill_at = inner, server, kill_at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def call(*args: Any, **options: Any) -> Any:
            await self._server.step()
            self._kill_at[0] -= 1
            if self._kill_at[0] == 0:
                raise Killed
            return await cast("Callable[..., Awaitable[Any]]", found)(*args, **options)

        return call


@asynccontextmanager
async def no_calls() -> AsyncIterator[None]:
    yield None


async def refuse_nothing() -> None:
    """There are no calls."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by calls of the stores only."""
    monkeypatch.setattr(transfer_online, "_POLL_S", 0.0)
    monkeypatch.setattr(transfer_online, "_NOTED_ROWS", 10)


async def moved(source: Store, target: Store, shards: int, server: BusyServer, *kills: int) -> int:
    """Moves the source; the first runs end after so many calls. How many did."""
    killed = 0
    for kill_at in (*kills, -1):
        left = [kill_at]
        both = [cast("Store", Beside(each, server, left)) for each in (source, target)]
        sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], shards, "b")
        try:
            await OnlineTransfer(*sides, unseen, no_calls, refuse_nothing).run()
            break
        except Killed:
            killed += 1
    return killed


async def begun(source: Store, seed: int, timers: int) -> BusyServer:
    await filled(source, timers=timers, random_=random.Random(seed), runs=20)
    server = BusyServer(source, random.Random(seed))
    await server.start()
    return server


async def assert_moved(source: Store, target: Store, shards: int, server: BusyServer, *, wide: int = 0) -> None:
    """`wide`: how many shards the namespace with all of the source's has; all of the target's if not given."""
    rows, records, _ = await contents(source, SOURCE_SHARDS)
    found, found_records, where = await contents(target, shards)
    assert found - rows == rows - found
    assert found == rows
    assert found_records == records
    for shard_id, row in where:
        assert isinstance(row, RunRow) or shard_id == placed(row, shards, wide=wide or shards)
    assert min(s.epoch for s in await target.shards()) > max(s.epoch for s in await source.shards())
    await refuse_transferred(target)
    with pytest.raises(TransferRefused, match="transferred to b"):
        await refuse_transferred(source)
    assert not server.epochs


@pytest.mark.timeout(300)
async def test_everything_moves_from_each_store_while_a_server_changes_it(store: Store) -> None:
    target = MemoryStore()
    server = await begun(store, 1, 40)
    await target.open(7)
    await moved(store, target, 7, server)
    assert server.changes > 5
    await assert_moved(store, target, 7, server)


@pytest.mark.timeout(300)
async def test_everything_moves_to_each_store_while_a_server_changes_it(store: Store) -> None:
    source = MemoryStore()
    server = await begun(source, 2, 60)
    await store.open(3)
    await moved(source, store, 3, server)
    await assert_moved(source, store, 3, server)


async def test_namespaces_with_ordered_flows_keep_their_shards() -> None:
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 4, 40)
    assert await FLOW_RECORDS.put(source, Flow("default", "order:", 1, 1, FlowLimits(None, 1, 1, ordered=True)))
    await target.open(7)
    await moved(source, target, 7, server)
    await assert_moved(source, target, 7, server, wide=SOURCE_SHARDS)


async def test_a_server_without_shards_is_waited_for_because_it_removes_history() -> None:
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 12, 20)
    await target.open(3)
    other = ChangeLog(source, b"x" * 16)
    await source.heartbeat(Member(b"x" * 16, "node-b", "http://b", 1))

    class Two(OnlineTransfer):
        """Of a source with a second server, which does not log until it is waited for."""

        async def _refuse_canceled(self) -> None:
            await super()._refuse_canceled()
            if server.logs and not other.on:
                other.on = True
                await other.announce(self._mark.transfer)

        async def _copy(self) -> None:
            assert other.on
            await source.forget_member(b"x" * 16)
            await super()._copy()

    both = [cast("Store", Beside(each, server, [-1])) for each in (source, target)]
    sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], 3, "b")
    await Two(*sides, unseen, no_calls, refuse_nothing).run()
    await assert_moved(source, target, 3, server)


async def test_a_target_that_is_slower_than_the_changes_pauses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 6, 40)
    await target.open(3)
    # However short it is, a round takes longer.
    monkeypatch.setattr(transfer_online, "_ROUND_S", -1.0)
    with monkeypatch.context() as slow:
        slow.setattr(transfer_online, "_LAST_ROUND_S_MAX", -1.0)
        with pytest.raises(TransferRefused, match="b takes changes no faster than the servers make them"):
            await moved(source, target, 3, server)
    mark = await read_mark(source)
    assert mark is not None and mark.phase == "copying" and server.epochs
    await moved(source, target, 3, server)
    await assert_moved(source, target, 3, server)


class Forgetful(MemoryStore):
    """A source in which what is forgotten is there for a while, as if the call took long."""

    def __init__(self) -> None:
        super().__init__()
        self.delayed: list[tuple[int, Sequence[bytes]]] | None = None

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        if self.delayed is None:
            await super().forget(shard_id, uuids)
        else:
            self.delayed.append((shard_id, uuids))

    async def catch_up(self) -> None:
        delayed, self.delayed = self.delayed or [], None
        for shard_id, uuids in delayed:
            await self.forget(shard_id, uuids)


@pytest.mark.parametrize("late", [False, True])
async def test_what_is_left_of_a_deleted_monitor_does_not_stay_in_the_target(late: bool) -> None:
    source, target = Forgetful(), MemoryStore()
    server = await begun(source, 9, 40)
    await target.open(7)
    keeps_until = time.time_ns() // 1_000 + US_PER_DAY
    uuid, (shard_id, row) = next(
        (uuid, found) for uuid, found in server.live.items() if found[1].namespace == "default/schedule"
    )

    async def write(*, deleted: bool) -> None:
        """A failed run of the monitor, or its end."""
        batch = ShardBatch(shard_id, server.epochs[shard_id], NODE)
        if deleted:
            batch.deletes.append(uuid)
        else:
            run = RunRow(uuid, server._generation(), b"run", keeps_until)
            batch.upserts.append(row)
            batch.runs.append(run)
            batch.failures.append(
                FailureRow(uuid, run.generation, row.namespace, row.timer_id, "cause", 10**15, 5, keeps_until)
            )
        assert await server.log.apply([batch]) == [Applied.DURABLE]

    class Copied(OnlineTransfer):
        """Of a source in which a monitor is deleted again and again once everything is copied, and then created."""

        async def _rounds(self) -> float:
            if not rounds:
                server.live.pop(uuid, None)
                server.failed = [each for each in server.failed if each[1].uuid != uuid]
                for _ in range(2):
                    await write(deleted=False)
                    await self._round()
                    await write(deleted=True)
                    if late:
                        source.delayed = []
                    await server.log.forget(shard_id, [uuid])
                    await self._round()
                    await source.catch_up()
                    await self._round()
                if not late:
                    await write(deleted=False)
                    await write(deleted=True)
                    await server.log.forget(shard_id, [uuid])
                    await write(deleted=False)
                    await write(deleted=False)
            rounds.append("one")
            return await super()._rounds()

    rounds: list[str] = []
    both = [cast("Store", Beside(each, server, [-1])) for each in (source, target)]
    sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], 7, "b")
    await Copied(*sides, unseen, no_calls, refuse_nothing).run()
    assert [each.uuid for each in await target.failures(placed(row, 7, wide=7), None, 100)].count(uuid) == (
        0 if late else 2
    )
    await assert_moved(source, target, 7, server)


async def test_what_changes_while_jobs_go_on_is_copied_before_the_pause() -> None:
    source, target, shown = MemoryStore(), MemoryStore(), [""]
    server = await begun(source, 8, 20)
    await target.open(3)

    async def put_job(job_id: str, state: JobState) -> None:
        job = Job(job_id, "default", JobKind.TIMERS, JobAction.CANCEL, RowFilter(0), 1, 1, state)
        records = {record.key: record.version async for record in every(source, JOBS)}
        assert await source.put_record(JOBS, job_id, encoded(job), records.get(job_id))

    @contextmanager
    def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
        shown.append(what)
        yield lambda rows: None

    class Jobs(OnlineTransfer):
        """Of a source whose first job begins before the pause and ends when it is waited for; so does the second, which
        begins while changes are copied."""

        async def _compare(self) -> Contents:
            compared = await super()._compare()
            await put_job("first", JobState.RUNNING)
            return compared

        async def _refuse_canceled(self) -> None:
            await super()._refuse_canceled()
            if shown[-1] == "waiting for jobs":
                await put_job("first" if "second" not in jobs else "second", JobState.COMPLETED)

        async def _round(self) -> int:
            if "waiting for jobs" in shown and "second" not in jobs:
                jobs.append("second")
                await put_job("second", JobState.RUNNING)
            return await super()._round()

    jobs = ["first"]
    both = [cast("Store", Beside(each, server, [-1])) for each in (source, target)]
    sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], 3, "b")
    await Jobs(*sides, progress, no_calls, refuse_nothing).run()
    between = shown[shown.index("waiting for jobs") : shown.index("pausing the servers")]
    assert between == ["waiting for jobs", "copying changes"] * 2 + ["waiting for jobs"]
    await assert_moved(source, target, 3, server)


async def test_a_transfer_that_was_interrupted_anywhere_goes_on() -> None:
    at, kills = 0, 1
    while kills:
        at += _KILL_EVERY
        source, target = MemoryStore(), MemoryStore()
        server = await begun(source, at, 25)
        await target.open(3)
        kills = await moved(source, target, 3, server, at, at + 7, at + 11)
        await assert_moved(source, target, 3, server)
    assert at > 50


async def test_paused_servers_go_on_when_the_transfer_shows_no_sign_of_life() -> None:
    source, now_s = MemoryStore(), [0.0]
    await source.open(SOURCE_SHARDS)
    patience = Patience(lambda: now_s[0])
    await patience.refuse_transferred(source)
    mark = await put_mark(source, TransferMark("source", "ab" * 16, "b", 1, phase="copying"))
    await patience.refuse_transferred(source)
    mark = await put_mark(source, msgspec.structs.replace(mark, phase="paused"))
    for now_s[0] in (0.0, PATIENCE_S - 1):
        with pytest.raises(TransferPending, match="about to switch over"):
            await patience.refuse_transferred(source)
    mark = await put_mark(source, mark)
    for now_s[0] in (PATIENCE_S, 2 * PATIENCE_S - 1):
        with pytest.raises(TransferPending, match="about to switch over"):
            await patience.refuse_transferred(source)
    now_s[0] = 2 * PATIENCE_S
    await patience.refuse_transferred(source)
    taken_back = await read_mark(source)
    assert taken_back is not None
    assert taken_back.phase == "copying"
    # The transfer that was only asleep does not switch over any more.
    with pytest.raises(TransferRefused):
        await put_mark(source, msgspec.structs.replace(mark, phase="moved"))


async def test_what_expires_while_both_stores_are_compared_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 8, 40)
    await target.open(3)
    slowly_compared(monkeypatch, transfer_online, target, 3)

    class Compared(OnlineTransfer):
        """Ends when it has compared the stores."""

        async def _wait_for_jobs(self) -> bool:
            raise Killed

    both = [cast("Store", Beside(each, server, [-1])) for each in (source, target)]
    sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], 3, "b")
    with pytest.raises(Killed):
        await Compared(*sides, unseen, no_calls, refuse_nothing).run()


async def test_a_claim_in_the_pause_is_not_used() -> None:
    source = MemoryStore()
    await source.open(SOURCE_SHARDS)
    await put_mark(source, TransferMark("source", "ab" * 16, "b", 1, phase="paused"))
    with pytest.raises(DefiniteFailure, match="being transferred to b"):
        await ChangeLog(source, NODE).claim(0, expected_epoch=0, owner=NODE)


async def test_a_server_removes_the_log_of_a_canceled_transfer() -> None:
    source = MemoryStore()
    server = await begun(source, 3, 20)
    await put_mark(source, TransferMark("source", "ab" * 16, "b", 1, phase="copying"))
    for _ in range(200):
        await server.step()
    before = [row for s in range(SOURCE_SHARDS) for row in (await source.load_suspended(s, KEY_MIN, 1_000)).rows]
    assert sum(row.namespace == CHANGES for row in before) > 50
    await remove_mark(source)
    await forget_log(source)
    await server.start()
    for _ in range(300):
        await server.change()
    after = [row for s in range(SOURCE_SHARDS) for row in (await source.load_suspended(s, KEY_MIN, 1_000)).rows]
    assert not [row for row in after if row.namespace == CHANGES]
    assert await logging_servers(source, "ab" * 16) == set()


async def test_an_end_that_is_written_while_a_page_is_read_hides_no_other(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "tocsin.db")
    await store.open(1)
    assert await store.claim(0, expected_epoch=0, owner=NODE) == 1
    ends = [
        HistoryRow(1, bytes([n]) * 16, bytes(32), "default", "a", (), b"{}", Status.COMPLETED, 2, 3) for n in (1, 2)
    ]
    assert await store.apply([ShardBatch(0, 1, NODE, history=ends[1:])]) == [Applied.DURABLE]
    read = store._rows

    async def interrupted(*args: Any) -> Any:
        found = await read(*args)
        store._rows = read  # type: ignore[method-assign]
        await store.apply([ShardBatch(0, 1, NODE, history=ends[:1])])
        return found

    store._rows = interrupted  # type: ignore[method-assign]
    found, cursor = [], None
    while (page := await store.ends(0, cursor, 10)).cursor is not None:
        found += page.rows
        cursor = page.cursor
    assert found == ends
    await store.close()
