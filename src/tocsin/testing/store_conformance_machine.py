"""Store conformance: random operations, compared step by step with `MemoryStore`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tocsin.model.timer import Status
from tocsin.ports.store import (
    KEY_MAX,
    Applied,
    FailurePlace,
    FailureRow,
    FireKey,
    HistoryRow,
    ListQuery,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    generation,
)
from tocsin.stores.memory import MemoryStore
from tocsin.testing.store_conformance_base import ALICE, BOB, TOTAL_SHARDS, StoreSuite, loaded, suspended
from tocsin.testing.store_conformance_lists import listed

T = TypeVar("T")

SHARDS = (0, 5)
UUIDS = [bytes([first]) + bytes(14) + bytes([last]) for first in (1, 0x7F, 0x80, 0xFF) for last in (0, 0xFF)]
NAMESPACES = ("default", "other")
TAGS = ("red", "re", "ü")

instants = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 1_000_000, 2**63 - 1])
uuids = st.sampled_from(UUIDS)
keys = st.tuples(instants, uuids)
records = st.one_of(st.binary(max_size=20), st.just(b'{"v":1,"payload":null}'))
finished_statuses = st.sampled_from(sorted(set(Status) - {Status.PENDING}))
#: Changes of one uuid in a batch.
fates = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["upsert", "upsert", "suspend", "delete"]),
        "at": instants,
        "namespace": st.sampled_from(NAMESPACES),
        "tags": st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
        "record": records,
        "history": st.none() | st.tuples(finished_statuses, st.integers(0, 10)),
        "run": st.none() | st.tuples(records, st.integers(0, 10)),
        "failure": st.none() | st.tuples(st.integers(-1, 3), instants, st.integers(0, 10)),
        "resolved": st.booleans(),
    }
)


class _Machine(RuleBasedStateMachine):
    """Runs the same operations on the store under test and on a memory store; all observations must be equal."""

    make_store: Callable[[Path], Store]
    knows_former: bool

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="tocsin-conformance-")
        self.runner = asyncio.Runner()
        self.sequence = count(1)
        self.memory: Store = MemoryStore()
        self.store = type(self).make_store(Path(self.folder.name))
        self.both(lambda store: store.open(TOTAL_SHARDS))
        self.fences = dict.fromkeys(SHARDS, (0, ALICE))
        #: What was claimed since the store was opened.
        self.claimed: set[int] = set()
        self.failed: dict[bytes, bytes] = {}

    def both(self, call: Callable[[Store], Any]) -> Any:
        """Runs a call on both stores; checks that the results are equal and returns the result."""

        async def run() -> tuple[Any, Any]:
            return await call(self.store), await call(self.memory)

        actual, expected = self.runner.run(run())
        assert actual == expected
        return actual

    @rule(shard_id=st.sampled_from(SHARDS), owner=st.sampled_from([ALICE, BOB]), stale=st.integers(0, 5))
    def claim(self, shard_id: int, owner: bytes, stale: int) -> None:
        epoch = self.fences[shard_id][0] + (1 if stale == 5 else 0)
        if self.both(lambda store: store.claim(shard_id, expected_epoch=epoch, owner=owner)) is not None:
            self.fences[shard_id] = (epoch + 1, owner)
            self.claimed.add(shard_id)

    @rule(shard_id=st.sampled_from(SHARDS))
    def release(self, shard_id: int) -> None:
        epoch, owner = self.fences[shard_id]
        self.both(lambda store: store.release(shard_id, epoch=epoch, owner=owner))

    @rule(
        shard_ids=st.sets(st.sampled_from(SHARDS), min_size=1).map(sorted),
        data=st.data(),
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def apply(self, shard_ids: list[int], data: st.DataObject, behind: int) -> None:
        batches = []
        for shard_id in shard_ids:
            changes = data.draw(st.dictionaries(uuids, fates, max_size=6), label=f"shard {shard_id}")
            mark = data.draw(st.none() | keys, label="delete_to") if self.store.capabilities.range_delete else None
            epoch, owner = self.fences[shard_id]
            late = behind if self.knows_former or shard_id in self.claimed else 0
            batches.append(self.batch(ShardBatch(shard_id, max(0, epoch - late), owner), changes, mark))
        results = self.both(lambda store: store.apply(batches))
        assert len(results) == len(batches)
        assert set(results) <= set(Applied)

    def batch(self, batch: ShardBatch, changes: dict[bytes, dict[str, Any]], mark: FireKey | None) -> ShardBatch:
        """The changes that may be in one batch: no live row is written in the deleted range."""
        batch.delete_to = mark
        for uuid, fate in changes.items():
            live = StoredRow(
                fate["at"],
                uuid,
                generation(batch.epoch, batch.owner, next(self.sequence)),
                fate["namespace"],
                f"id-{uuid[0]}",
                fate["tags"],
                fate["record"],
                "why" if fate["kind"] == "suspend" else None,
            )
            if fate["kind"] == "delete":
                batch.deletes.append(uuid)
            elif live.suspended is not None or mark is None or live.key > mark:
                batch.upserts.append(live)
            if fate["history"] is not None:
                status, expires_at = fate["history"]
                ended = live._replace(generation=generation(batch.epoch, batch.owner, next(self.sequence)))
                batch.history.append(HistoryRow(*ended[:7], status, 0, expires_at))
            if fate["run"] is not None:
                of = generation(batch.epoch, batch.owner, next(self.sequence))
                batch.runs.append(RunRow(uuid, of, *fate["run"]))
            if fate["resolved"] and uuid in self.failed:
                batch.resolved.append((uuid, self.failed.pop(uuid)))
            if fate["failure"] is not None:
                of = self.failed[uuid] = generation(batch.epoch, batch.owner, next(self.sequence))
                failed_at, execute_at, expires_at = fate["failure"]
                names = (fate["namespace"], f"id-{uuid[0]}", "http://a/\x1fTIMEOUT")
                batch.failures.append(FailureRow(uuid, of, *names, failed_at, execute_at, expires_at))
        return batch

    @rule(shard_id=st.sampled_from(SHARDS), after=keys, up_to=keys | st.just(KEY_MAX), page_rows=st.integers(1, 5))
    def load(self, shard_id: int, after: FireKey, up_to: FireKey, page_rows: int) -> None:
        self.both(lambda store: loaded(store, shard_id, after=after, up_to=up_to, page_rows=page_rows))
        self.both(lambda store: suspended(store, shard_id, page_rows=page_rows))

    @rule(shard_id=st.sampled_from(SHARDS), some=st.lists(uuids, max_size=8))
    def fetch(self, shard_id: int, some: list[bytes]) -> None:
        self.both(lambda store: store.fetch(shard_id, some))

    @rule(shard_id=st.sampled_from(SHARDS), uuid=uuids, limit=st.integers(1, 3))
    def runs(self, shard_id: int, uuid: bytes, limit: int) -> None:
        page, before = limit, None
        while page == limit:
            rows = self.both(partial(_runs, shard_id, uuid, before, limit))
            page, before = len(rows), rows[-1].generation if rows else None

    @rule(
        shard_id=st.sampled_from(SHARDS),
        descending=st.booleans(),
        limit=st.integers(1, 3),
        remove=st.sampled_from([False, False, True]),
    )
    def failures(self, shard_id: int, descending: bool, limit: int, remove: bool) -> None:
        rows: list[FailureRow] = []
        after: FailurePlace | None = None
        while after is None or len(rows) % limit == 0:
            page = self.both(partial(_failures, shard_id, after, limit, descending))
            if not page:
                break
            rows += page
            after = rows[-1].place
        if remove:
            self.both(lambda store: store.remove_failures(shard_id, [row.place for row in rows[::2]]))

    @rule(shard_id=st.sampled_from(SHARDS), some=st.lists(uuids, max_size=3))
    def forget(self, shard_id: int, some: list[bytes]) -> None:
        self.both(lambda store: store.forget(shard_id, some))

    @rule(
        namespaces=st.sampled_from([*((name,) for name in NAMESPACES), NAMESPACES, None]),
        statuses=st.sets(st.sampled_from(Status), min_size=1).map(frozenset),
        tags=st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
        prefix=st.sampled_from(["", "id-1", "id-127"]),
        bounds=st.tuples(st.none() | instants, st.none() | st.sampled_from([0, 2, 2**63 - 1])),
        limit=st.integers(1, 6),
        scan_rows_max=st.sampled_from([1, 3, 1000]),
    )
    def list(
        self,
        namespaces: tuple[str, ...] | None,
        statuses: frozenset[Status],
        tags: tuple[str, ...],
        prefix: str,
        bounds: tuple[int | None, int | None],
        limit: int,
        scan_rows_max: int,
    ) -> None:
        query = ListQuery(namespaces, SHARDS, statuses, tags, prefix, *bounds, limit=limit, scan_rows_max=scan_rows_max)
        self.both(lambda store: listed(store, query))

    @precondition(lambda self: not self.store.capabilities.expires_history)
    @rule(now_us=st.integers(0, 10))
    def purge(self, now_us: int) -> None:
        self.both(lambda store: store.purge_history(now_us, 1_000))

    @rule(shard_id=st.sampled_from(SHARDS), uuid=uuids, keep=st.integers(1, 3), limit=st.integers(1, 3))
    def trim(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> None:
        self.both(lambda store: store.trim_runs(shard_id, uuid, keep, limit))

    @precondition(lambda self: self.persistent)
    @rule()
    def reopen(self) -> None:
        self.runner.run(self.store.close())
        self.store = type(self).make_store(Path(self.folder.name))
        assert self.runner.run(self.store.open(None)) == TOTAL_SHARDS
        self.claimed.clear()
        self.both(lambda store: store.shards())

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()


async def _runs(
    shard_id: int, uuid: bytes, before: bytes | None, limit: int, store: Store
) -> list[HistoryRow | RunRow]:
    return await store.runs(shard_id, uuid, before, limit)


async def _failures(
    shard_id: int, after: FailurePlace | None, limit: int, descending: bool, store: Store
) -> list[FailureRow]:
    return await store.failures(shard_id, after, limit, descending=descending)


class MachineConformance(StoreSuite):
    """Random operations."""

    examples = 60

    def test_random_histories_match_the_memory_store(self) -> None:
        suite = self

        class Machine(_Machine):
            make_store = staticmethod(suite.make_store)
            persistent, knows_former = suite.persistent, suite.knows_former

        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
