"""The execution module on a SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tests.integration.agent.execution_parts import Arrival, Bench, FakeDelivery, Service, answer, limited
from tocsin.service_calls.events import ExecutionFinished, ExecutionsInterrupted
from tocsin.stores.service_calls.executions import SqlExecutionLog
from tocsin.stores.service_calls.outbox import SqlOutbox
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite import SqliteDatabase
from tocsin.stores.service_calls.statements import Session


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """A migrated database file."""
    opened = SqliteDatabase(f"{tmp_path}/agent.db", SqlSettings())
    await opened.open()
    yield opened
    await opened.close()


async def submit(database: SqliteDatabase, orders: list[FakeDelivery]) -> None:
    """Inserts the calls of the orders: the log refers to them."""

    async def work(session: Session) -> None:
        columns = [row[1] for row in await session.rows("PRAGMA table_info(service_calls)", ()) if row[3]]
        columns.append("execution_id")
        for order in orders:
            values = dict.fromkeys(columns, "{}")
            values |= {
                "executions": 1,
                "attempts": 0,
                "status": "Running",
                "submitted_at": "2027-01-31T12:00:00.000000Z",
                "due_at": "2027-01-31T12:00:00.000000Z",
            }
            values |= {"tenant_id": order.envelope.tenant_id, "service_call_id": order.envelope.aggregate_id}
            values["execution_id"] = msgspec.json.decode(order.envelope.payload)["executionId"]
            names = [name for name in values if name in columns]
            places = ", ".join("?" * len(names))
            sql = f"INSERT INTO service_calls ({', '.join(names)}) VALUES ({places})"
            await session.count(sql, [values[name] for name in names])

    await database.write(work)


async def test_executions_are_logged_in_a_database_file(database: SqliteDatabase) -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(200 if len(arrival.body) < 9 else 503, b"a\x00\xff", "set-cookie: s")

    log = SqlExecutionLog(database, SqlOutbox(database))
    async with Bench(log=log) as bench, Service(reply, bench.changes) as service:
        orders = [
            bench.order(service.url, body=b"9" * (n % 2 * 10 + 1), headers={"authorization": "Bearer x"})
            for n in range(300)
        ]
        await submit(database, orders)
        gone = bench.order(service.url)
        await bench.hand_over(
            *orders, gone, *[bench.delivery(bench.registry.open(order.envelope)) for order in orders[:50]]
        )
        await bench.changes.until(lambda: sum(isinstance(event, ExecutionFinished) for event in bench.events) == 300)
        await bench.changes.until(lambda: gone.settled == "acked")
        assert len(service.arrivals) == 300
        assert (await log.unfinished(10)).rows == []
        rows = await database.read(
            lambda session: session.rows("SELECT event_type, count(*) FROM outbox GROUP BY 1 ORDER BY 1", ())
        )
        assert [tuple(row) for row in rows] == [
            ("ExecutionFailed", 150),
            ("ExecutionStarted", 300),
            ("ExecutionSucceeded", 150),
        ]
        (row,) = await database.read(lambda session: session.rows("SELECT * FROM http_execution_log LIMIT 1", ()))
        assert "Bearer" not in str(row)
        assert "a␀\ufffd" in row


async def test_interrupted_executions_are_recovered_from_a_database_file(database: SqliteDatabase) -> None:
    async def never(arrival: Arrival) -> bytes | None:
        await asyncio.Event().wait()
        return None

    log = SqlExecutionLog(database, SqlOutbox(database))
    async with Bench(log=log) as bench, Service(never, bench.changes) as service:
        orders = [bench.order(service.url) for _ in range(5)]
        await submit(database, orders)
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: service.in_flight == 5)
        assert not await bench.executor.drain(1_000)
    async with Bench(limited(executions_in_flight_max=2), log=log) as after:
        assert await after.executor.recover() == 5
        assert after.events == [ExecutionsInterrupted(5)]
        assert (await log.unfinished(10)).rows == []


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_every_method_is_logged(method: str, database: SqliteDatabase) -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(200, b"")

    log = SqlExecutionLog(database, SqlOutbox(database))
    async with Bench(log=log) as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url, method)
        await submit(database, [order])
        await bench.hand_over(order)
        await bench.changes.until(lambda: order.settled is not None)
        assert order.settled == "acked"
