"""What the topics of the store conformance tests share: the hook, the fixture, and rows to write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
import pytest_asyncio

from tocsin.model.timer import Status
from tocsin.ports.store import (
    KEY_MAX,
    KEY_MIN,
    Applied,
    FailureRow,
    FireKey,
    HistoryRow,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    generation,
)

#: Incarnations of nodes.
ALICE, BOB = b"alice-incarnatio", b"bob-incarnation-"
TOTAL_SHARDS = 8

_sequences = count(1)


class StoreSuite:
    """Base of all topics. Subclass `StoreConformance` (or a topic) and define `make_store`.

    `persistent`: a new store for the same folder finds what the former one wrote. `knows_former`: it also knows of a batch of
    a former claim that this was not written, before it has claimed the shard itself, as nodes do first.
    """

    persistent: ClassVar[bool] = True
    knows_former: ClassVar[bool] = True

    def make_store(self, folder: Path) -> Store:
        """A store, not yet open, whose data belongs to the folder: the same folder has the same data, a new one has none.
        Adapters of database servers may use the folder's path as a unique name."""
        raise NotImplementedError(
            f"{type(self).__name__} has no make_store: define make_store(self, folder), which returns a store "
            "that is not yet open, with its data in the folder"
        )

    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        """An empty store, open."""
        store = self.make_store(tmp_path)
        await store.open(TOTAL_SHARDS)
        yield store
        await store.close()

    def require_persistent(self) -> None:
        """Skips the test for a store whose data does not outlive the object."""
        if not self.persistent:
            pytest.skip("not persistent")

    def require_range_delete(self, store: Store) -> None:
        """Skips the test for a store without range deletes."""
        if not store.capabilities.range_delete:
            pytest.skip("no range deletes")

    def require_purge(self, store: Store) -> None:
        """Skips the test for a store whose database expires rows by itself."""
        if store.capabilities.expires_history:
            pytest.skip("the database expires rows by itself")


def uuid_of(number: int) -> bytes:
    """Sixteen bytes that sort like the number."""
    return number.to_bytes(16, "big")


def row(
    number: int,
    at: int = 0,
    *,
    uuid: bytes | None = None,
    namespace: str = "default",
    timer_id: str | None = None,
    tags: tuple[str, ...] = (),
    record: bytes = b'{"v":1}',
    suspended: str | None = None,
) -> StoredRow:
    """A live row. Every call returns a later generation."""
    return StoredRow(
        execute_at=at,
        uuid=uuid or uuid_of(number),
        generation=generation(1, ALICE, next(_sequences)),
        namespace=namespace,
        timer_id=timer_id or f"timer-{number}",
        tags=tags,
        record=record,
        suspended=suspended,
    )


def finished(live: StoredRow, status: Status = Status.COMPLETED, *, at: int = 0, expires_at: int = 1_000) -> HistoryRow:
    """The history row of a live row."""
    return HistoryRow(*live[:7], status=status, finished_at=at, expires_at=expires_at)


def run(of: StoredRow, record: bytes = b'{"v":1}', *, expires_at: int = 1_000) -> RunRow:
    """The row of a run that ended with a live row."""
    return RunRow(of.uuid, of.generation, record, expires_at)


def failure(of: StoredRow, at: int = 0, cause: str = "http://a/\x1fHTTP 500", *, expires_at: int = 1_000) -> FailureRow:
    """The failure row of a run that ended with a live row."""
    return FailureRow(of.uuid, of.generation, of.namespace, of.timer_id, cause, at, of.execute_at, expires_at)


async def claimed(store: Store, shard_id: int = 0, owner: bytes = ALICE) -> ShardBatch:
    """Claims an unclaimed shard; returns an empty batch that passes its fence."""
    epoch = await store.claim(shard_id, expected_epoch=0, owner=owner)
    assert epoch == 1
    return ShardBatch(shard_id, epoch, owner)


async def put(store: Store, *rows: StoredRow, shard_id: int = 0) -> None:
    """Upserts rows in a shard that ALICE owns in epoch 1."""
    assert await store.apply([ShardBatch(shard_id, 1, ALICE, upserts=list(rows))]) == [Applied.DURABLE]


async def loaded(
    store: Store, shard_id: int = 0, *, after: FireKey = KEY_MIN, up_to: FireKey = KEY_MAX, page_rows: int = 100
) -> list[StoredRow]:
    """All live rows in a range, read page by page. It checks what each page promises."""
    rows: list[StoredRow] = []
    while after < up_to:
        page = await store.load(shard_id, after, up_to, page_rows)
        assert len(page.rows) <= page_rows
        assert [r.key for r in page.rows] == sorted(r.key for r in page.rows)
        assert all(after < r.key <= page.complete_to for r in page.rows)
        assert after < page.complete_to <= up_to
        rows += page.rows
        after = page.complete_to
    return rows


async def suspended(store: Store, shard_id: int = 0, *, page_rows: int = 100) -> list[StoredRow]:
    """All suspended rows, read and checked likewise."""
    rows: list[StoredRow] = []
    after = KEY_MIN
    while after < KEY_MAX:
        page = await store.load_suspended(shard_id, after, page_rows)
        assert len(page.rows) <= page_rows
        assert all(after < r.key <= page.complete_to for r in page.rows)
        assert after < page.complete_to
        rows += page.rows
        after = page.complete_to
    return rows
