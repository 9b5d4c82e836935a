"""What docs/how-to/dynamodb.md states of units and of the table holds."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from tocsin.model.errors import ConfigError
from tocsin.ports.observer import Event, StoreUnitsConsumed
from tocsin.ports.store import KEY_MAX, KEY_MIN, StoredRow, schedules_of
from tocsin.stores.dynamodb.client import RequestKind
from tocsin.stores.dynamodb.schema import definition
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.options import DynamoOptions
from tocsin.testing.store_conformance_base import claimed, finished, row, run

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "dynamodb.md"
#: Of the fence, while it lists the uuid of one timer.
FENCE = 2


class _Meter:
    """Units since they were read last."""

    def __init__(self) -> None:
        self._units = {"read": 0.0, "write": 0.0}

    def __call__(self, event: Event) -> None:
        if isinstance(event, StoreUnitsConsumed):
            self._units[event.kind] += event.units

    def read(self) -> tuple[float, float]:
        """Write units, read units."""
        units, self._units = self._units, {"read": 0.0, "write": 0.0}
        return units["write"], units["read"]


@pytest_asyncio.fixture
async def store(dynamodb_url: str) -> AsyncIterator[DynamoStore]:
    store = DynamoStore(dynamodb_url)
    await store.open(4)
    yield store
    await store.close()


def _timer(payload_bytes: int, at: int = 1) -> StoredRow:
    return row(1, at, timer_id="order-000000001-reminder", tags=("red",), record=b"x" * payload_bytes)


# Of actions of a transaction that take the same units, DynamoDB Local counts one only: here those of one transaction differ.
@pytest.mark.parametrize("further_kb", [0, 1, 5])
async def test_units_of_a_timer(store: DynamoStore, further_kb: int) -> None:
    batch = await claimed(store)
    store._open.observe = meter = _Meter()
    timer = _timer(600 + 1_024 * further_kb)
    await store.apply([replace(batch, upserts=[timer])])
    assert meter.read() == (FENCE + 4 + 2 * further_kb, 0)
    # The table's item is replaced; the entry of an index is deleted and put where its instant changes.
    for at, units in ((1, 4), (2, 6), (1, 6)):
        timer = _timer(len(timer.record), at)
        await store.apply([replace(batch, upserts=[timer])])
        assert meter.read() == (FENCE + units + 2 * further_kb, 0)
    page = await store.load(0, KEY_MIN, KEY_MAX, 100)
    assert page.rows == [timer]
    # Four KB in the unit of the item, and one for the page of the index.
    assert meter.read() == (0, 1 + (2 if further_kb > 3 else 1))
    await store.apply([replace(batch, deletes=[timer.uuid], history=[finished(timer)])])
    assert meter.read() == (FENCE + 10 + 4 * further_kb, 0)
    assert await store.purge_history(2_000, 100) == 1
    assert meter.read()[0] == 3 + further_kb
    await store.apply([replace(batch, upserts=[timer])])
    meter.read()
    await store.apply([replace(batch, deletes=[timer.uuid])])
    assert meter.read() == (FENCE + 4 + 2 * further_kb, 0)


async def test_units_of_a_schedule(store: DynamoStore) -> None:
    batch = await claimed(store)
    store._open.observe = meter = _Meter()
    schedule = _timer(600)._replace(namespace=schedules_of("default"))
    await store.apply([replace(batch, upserts=[schedule])])
    assert meter.read() == (FENCE + 6, 0)
    # Its next occurrence: the entry by id stays.
    schedule = schedule._replace(execute_at=2)
    await store.apply([replace(batch, upserts=[schedule])])
    assert meter.read() == (FENCE + 6, 0)
    await store.apply([replace(batch, runs=[run(schedule)])])
    assert meter.read() == (FENCE + 4, 0)
    assert await store.list_schedules("default", range(4), "", 100) == [schedule]
    # The entry and the item. The other shards' empty pages cost a unit each on the service, and nothing here.
    assert meter.read() == (0, 1 + 1)
    assert await store.purge_history(2_000, 100) == 1
    assert meter.read()[0] == 2
    await store.apply([replace(batch, deletes=[schedule.uuid])])
    assert meter.read() == (FENCE + 6, 0)


async def test_units_where_dynamodb_removes_what_has_expired(dynamodb_url: str) -> None:
    store = DynamoStore(dynamodb_url, DynamoOptions(time_to_live=True))
    await store.open(4)
    batch = await claimed(store)
    store._open.observe = meter = _Meter()
    await store.apply([replace(batch, upserts=[timer := _timer(600)])])
    meter.read()
    # By themselves: each takes as much as the other.
    await store.apply([replace(batch, deletes=[timer.uuid])])
    assert meter.read() == (FENCE + 4, 0)
    await store.apply([replace(batch, history=[finished(timer)])])
    assert meter.read() == (FENCE + 4, 0)
    await store.apply([replace(batch, runs=[run(timer, b"x" * 1_100)])])
    assert meter.read() == (FENCE + 4, 0), "of two KB"
    assert await store.purge_history(2_000, 100) == 0
    assert meter.read() == (0, 0)
    await store.close()


async def test_where_dynamodb_is_to_remove_a_table_that_does_not_is_refused_or_made_to(
    store: DynamoStore, dynamodb_url: str
) -> None:
    # As a node leaves it that has ended between creating the table and enabling that.
    _, query = dynamodb_url.split("?")
    table = f"{store._open.table}.bare"
    await store._open.call(
        "create_table", RequestKind.WRITE, TableName=table, BillingMode="PAY_PER_REQUEST", **definition()
    )
    url = f"dynamodb://{table}?{query}"
    with pytest.raises(ConfigError, match=r"dynamodb.time_to_live: .* enable time to live on its attribute ttl"):
        await DynamoStore(url, DynamoOptions(time_to_live=True), create=False).open(None)
    for options in (DynamoOptions(), DynamoOptions(time_to_live=True)):
        await (opened := DynamoStore(url, options)).open(4)
        await opened.close()
    await (again := DynamoStore(url, DynamoOptions(time_to_live=True), create=False)).open(None)
    await again.close()


def _has_units(cells: list[str]) -> bool:
    return len(cells) == 3 and any(cells[1:]) and all(cell.isdigit() or not cell for cell in cells[1:])


def test_the_page_sums_up_and_multiplies() -> None:
    page = PAGE.read_text()
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    units = {name: (int(write or 0), int(read or 0)) for name, write, read in (r for r in rows if _has_units(r))}
    create, load = units["create: item and index entry"][0], units["load into memory"][1]
    fire, history = (
        units["fire, without history: delete item and index entry"][0],
        units["fire, with history: the same, and a history item with two index entries"][0],
    )
    purge = units["remove the history item when its retention is over"][0]
    assert units["a timer with history"] == (create + history + purge, load)
    assert units["a timer without history"] == (create + fire, load)
    occurrence = units["an occurrence of a schedule without history"][0]
    kept = units["its row in the history, with an index entry"][0]
    kept += units["remove that row when its retention is over"][0]
    assert units["an occurrence of a schedule with history"] == (occurrence + kept, load)
    without, whole, each = (
        units[kind][0]
        for kind in ("a timer without history", "a timer with history", "an occurrence of a schedule with history")
    )
    # Who leaves the removal to DynamoDB saves it, and the entry by expiry.
    saved, saved_each = purge + 2, units["remove that row when its retention is over"][0] + 2
    for life, shared, less, commits in (
        ("fired, no history", without, 0, 2),
        ("fired", whole, saved, 2),
        ("canceled", whole, saved, 2),
        ("an occurrence of a schedule", each, saved_each, 1),
    ):
        (cells,) = [row[1:] for row in rows if row[0] == life]
        alone = shared + commits * FENCE
        assert [int(cell.partition(",")[0]) for cell in cells] == [alone, shared, alone - less, shared - less]


def test_the_command_on_the_page_makes_the_table_that_the_store_makes() -> None:
    (block,) = [each for each in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if "create-table" in each]
    words = shlex.split(block.partition("aws dynamodb update-time-to-live")[0].replace("\\\n", " "))
    at = words.index("--attribute-definitions"), words.index("--key-schema"), words.index("--local-secondary-indexes")
    made = definition()

    def structures(texts: list[str]) -> list[dict[str, str]]:
        return [dict(part.split("=") for part in text.split(",")) for text in texts]

    assert structures(words[at[0] + 1 : at[1]]) == made["AttributeDefinitions"]
    assert structures(words[at[1] + 1 : at[2]]) == made["KeySchema"]
    assert json.loads(words[at[2] + 1]) == [
        {"IndexName": i["IndexName"], "Projection": i["Projection"], "KeySchema": i["KeySchema"]}
        for i in made["LocalSecondaryIndexes"]
    ]
