"""All rows of the agent's tables move between databases of both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.conformance.test_transfer import SOURCE_SHARDS, side, unseen
from tests.conformance.test_transfer_online import Beside, begun, impatient, refuse_nothing
from tests.support.agent_database import (
    TENANT,
    append,
    call,
    change,
    end,
    entry,
    envelope,
    insert,
    running,
    start,
    waits,
)
from tests.support.postgresql import PostgresServer
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.store import Store
from tocsin.server.transfer_calls import Calls
from tocsin.server.transfer_online import OnlineTransfer
from tocsin.stores.memory import MemoryStore
from tocsin.stores.service_calls.database import AgentDatabase, agent_database
from tocsin.stores.service_calls.moving import TABLES, clear_copy, copy_tables, is_empty, measured_tables

__all__ = ["impatient"]


def columns_of(database: str) -> dict[str, list[str]]:
    """The columns of each table in the schema."""
    import tocsin.stores.service_calls as package

    sql = (Path(package.__file__).parent / "migrations" / database / "0001_schema.sql").read_text()
    tables = {}
    for part in sql.split("CREATE TABLE ")[1:]:
        name, _, body = part.partition(" (")
        lines = [line.strip() for line in body.partition("\n)")[0].splitlines()]
        # A check's own lines repeat columns.
        tables[name] = list(dict.fromkeys(line.split(" ")[0] for line in lines if line[:1].islower()))
    return tables


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_column_of_the_schema_is_moved(database: str) -> None:
    schema = columns_of(database)
    for kept in ("agent_identity", "agent_leader", "agent_heartbeat"):
        del schema[kept]
    schema.pop("agent_meta", None)
    assert {table.name: list(table.columns) for table in TABLES} == schema


@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
async def test_a_database_moves_whole(
    database: AgentDatabase, to: str, shared_postgresql: PostgresServer, tmp_path: Path
) -> None:
    calls = [call(TENANT, name=f"call {number} \u00e9", tags=("a", "b")[: number % 3]) for number in range(450)]
    await insert(database, *calls)
    await database.timers.schedule_timers([entry(each) for each in calls[:50]])
    began = [start(each) for each in calls[:20]]
    await database.executions.begin([(each, envelope(of)) for each, of in zip(began, calls, strict=False)])
    await database.executions.finish([(end(each), envelope(of)) for each, of in zip(began[:10], calls, strict=False)])
    await database.suspended.suspend([waits(each, "host") for each in calls[20:30]])
    await append(database, *map(envelope, calls[:5]))
    await database.secrets.change(TENANT, lambda former: SigningSecrets("whsec_" + "a" * 32, ()))
    url = await shared_postgresql.create_database() if to == "postgresql" else f"sqlite:///{tmp_path / 'moved.db'}"
    target = agent_database(url)
    await target.open()
    try:
        assert await is_empty(target)
        for _ in range(2):
            await copy_tables(database, target, lambda rows: None)
            assert await measured_tables(target, lambda rows: None) == await measured_tables(
                database, lambda rows: None
            )
        assert not await is_empty(target)
        counts = (await measured_tables(target, lambda rows: None))[0]
        assert (counts["service_calls"], counts["timer_schedules"], counts["outbox"]) == (450, 50, 35)
        # Messages go on behind those of the source.
        last = max(row.number for row in await database.outbox.unpublished(0, 100))
        await append(target, envelope(calls[0]))
        assert max(row.number for row in await target.outbox.unpublished(0, 100)) == last + 1
        identity = database.identity
    finally:
        await target.close()
    again = agent_database(url)
    await again.open()
    assert again.identity == identity
    await again.close()


async def test_a_copy_is_cleared_when_the_source_has_changed_and_nothing_else_is(
    database: AgentDatabase, tmp_path: Path
) -> None:
    """A transfer under traffic that was killed in its pause begins with it again."""
    calls = [call(TENANT, name=f"call {number}", tags=("a",)) for number in range(3)]
    await insert(database, *calls)
    await append(database, envelope(calls[0]))
    place = f"sqlite:///{tmp_path / 'moved.db'}"
    target = agent_database(place)
    await target.open()
    try:
        assert await clear_copy(database, target)
        await copy_tables(database, target, lambda rows: None)
    finally:
        await target.close()
    assert await change(database, running(calls[0]))
    target = agent_database(place)
    await target.open()
    try:
        assert await clear_copy(database, target)
        assert await is_empty(target)
        await copy_tables(database, target, lambda rows: None)
        assert await measured_tables(target, lambda rows: None) == await measured_tables(database, lambda rows: None)
    finally:
        await target.close()
    other = agent_database(f"sqlite:///{tmp_path / 'other.db'}")
    await other.open()
    try:
        await insert(other, calls[0])
        assert not await clear_copy(database, other)
        assert not await is_empty(other)
    finally:
        await other.close()


async def test_a_transfer_under_traffic_copies_again_what_an_earlier_try_has_copied(tmp_path: Path) -> None:
    """Its process was killed in the pause, and the calls have gone on since."""
    source, target = MemoryStore(), MemoryStore()
    server = await begun(source, 9, 20)
    await target.open(3)
    databases = Calls(*(agent_database(f"sqlite:///{tmp_path / name}") for name in ("source.db", "target.db")))
    for each in databases:
        await each.open()
    calls = [call(TENANT, name=f"call {number}") for number in range(3)]
    await insert(databases.source, *calls)
    await databases.copy(lambda rows: None)
    assert await change(databases.source, running(calls[0]))

    @asynccontextmanager
    async def opened() -> AsyncIterator[Calls]:
        yield databases

    both = [cast("Store", Beside(each, server, [-1])) for each in (source, target)]
    sides = side(both[0], SOURCE_SHARDS, "a")._replace(member_timeout_s=60.0), side(both[1], 3, "b")
    try:
        contents = await OnlineTransfer(*sides, unseen, opened, refuse_nothing).run()
        assert contents.calls == 3
        await databases.verify(lambda rows: None)
    finally:
        for each in databases:
            await each.close()
