"""DynamoDB, here DynamoDB Local, keeps the store port's rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.damage import damage
from tests.support.dynamodb import DynamoServer
from tests.support.patience import PATIENCE_S
from tests.support.shared import name_of
from tocsin.ports.store import Store, schedules_of
from tocsin.stores.dynamodb.client import RequestKind
from tocsin.stores.dynamodb.keys import timer_key
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.options import DynamoOptions
from tocsin.testing.store_conformance import StoreConformance
from tocsin.testing.store_conformance_base import claimed, failure, finished, put, row, run, uuid_of
from tocsin.testing.store_conformance_batches import FenceConformance, FetchConformance, LoadConformance
from tocsin.testing.store_conformance_durability import timers
from tocsin.testing.store_conformance_lists import HistoryConformance, ListConformance, ScheduleConformance
from tocsin.testing.store_conformance_machine import MachineConformance

#: A process of a busy test run may stand still for longer than a connection should take.
_PATIENT = DynamoOptions(connect_timeout_s=PATIENCE_S)


class TestDynamoStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 15

    @pytest.fixture(autouse=True)
    def _server(self, shared_dynamodb: DynamoServer) -> None:
        self.server = shared_dynamodb

    def make_store(self, folder: Path) -> Store:
        return DynamoStore(self.server.url(name_of(folder)), _PATIENT)

    async def test_a_schedule_that_has_lost_its_id_is_left_out_of_the_list(self, store: DynamoStore) -> None:
        await claimed(store)
        rows = timers(3, namespace=schedules_of("default"))
        await put(store, *rows)
        lost, names = timer_key(0, rows[1].uuid), {"#lost": "i"}
        await store._open.update(lost, "REMOVE #lost", kind=RequestKind.WRITE, ExpressionAttributeNames=names)
        for limit in (1, 2, 3):
            assert await store.list_schedules("default", [0], "", limit) == [rows[0], rows[2]][:limit]


class TestDynamoStoreWithSmallPages(
    FenceConformance,
    LoadConformance,
    FetchConformance,
    ListConformance,
    HistoryConformance,
    ScheduleConformance,
    MachineConformance,
):
    """Queries are cut after two items, and batches after three writes."""

    #: Its batches of 513 runs would be hundreds of transactions.
    test_batches_with_any_number_of_runs_are_complete = None

    examples = 10

    @pytest.fixture(autouse=True)
    def _server(self, shared_dynamodb: DynamoServer) -> None:
        self.server = shared_dynamodb

    def make_store(self, folder: Path) -> Store:
        return DynamoStore(self.server.url(name_of(folder)), replace(_PATIENT, page_items_max=2, actions_max=6))


class TestDynamoStoreWithTimeToLive(HistoryConformance, MachineConformance):
    """DynamoDB alone removes what has expired."""

    examples = 5

    #: Its batches of 513 runs would be hundreds of transactions.
    test_batches_with_any_number_of_runs_are_complete = None

    @pytest.fixture(autouse=True)
    def _server(self, shared_dynamodb: DynamoServer) -> None:
        self.server = shared_dynamodb

    def make_store(self, folder: Path) -> Store:
        return DynamoStore(self.server.url(name_of(folder)), replace(_PATIENT, time_to_live=True))

    async def test_what_a_node_without_the_setting_wrote_is_read_and_not_removed(
        self, store: DynamoStore, tmp_path: Path
    ) -> None:
        other = DynamoStore(self.server.url(name_of(tmp_path)), _PATIENT)
        await other.open(None)
        batch = await claimed(store)
        rows = [finished(row(number), expires_at=10) for number in (1, 2)]
        await other.apply([replace(batch, history=rows[:1], runs=[run(row(3))], failures=[failure(row(4))])])
        await store.apply([replace(batch, history=rows[1:], runs=[run(row(5))], failures=[failure(row(6))])])
        for each in (store, other):
            found = await each.fetch(0, [uuid_of(1), uuid_of(2)])
            assert [found[uuid].finished for uuid in sorted(found)] == rows
            assert [len(await each.runs(0, uuid_of(number), None, 10)) for number in (3, 5)] == [1, 1]
            assert len(await each.failures(0, None, 10)) == 2
        assert await store.purge_history(1_000, 100) == 0
        assert await other.purge_history(1_000, 100) == 3, "of its own rows"
        await other.close()
