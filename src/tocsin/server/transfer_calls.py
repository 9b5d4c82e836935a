"""The service calls of a transfer: from the source's agent database to that of the target, where they are not the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from tocsin.model.errors import StoreLocked
from tocsin.model.setting_values import redacted
from tocsin.server.backup import CALLS, database_files
from tocsin.server.extras import require_driver
from tocsin.server.transfer_mark import TransferRefused
from tocsin.settings import Settings
from tocsin.stores.service_calls.database import AgentDatabase, agent_database
from tocsin.stores.service_calls.moving import CALLS_TABLE, clear_copy, copy_tables, is_empty, measured_tables


class Calls(NamedTuple):
    """Both agent databases, open, so that no agent runs."""

    source: AgentDatabase
    target: AgentDatabase

    async def clear(self) -> None:
        """Removes what an earlier try has copied: what the source has changed since is not missing, but differs. Raises
        TransferRefused if the target's calls are no copy of the source's."""
        if not await clear_copy(*self):
            raise TransferRefused(
                "the target's agent.database has service calls that are not from the source; nothing was switched over; name "
                "an empty one"
            )

    async def copy(self, advance: Callable[[int], None]) -> None:
        """Copies what is missing."""
        await copy_tables(self.source, self.target, advance)

    async def counted(self, advance: Callable[[int], None]) -> int:
        """The source's calls."""
        return (await measured_tables(self.source, advance))[0][CALLS_TABLE]

    async def verify(self, advance: Callable[[int], None]) -> None:
        """Raises TransferRefused unless all rows of both are the same."""
        expected, found = [await measured_tables(each, advance) for each in self]
        if expected != found:
            raise TransferRefused(
                f"the target's service calls are not those of the source: {found[0]} instead of {expected[0]}; nothing was "
                "switched over; start over with an empty store"
            )


@asynccontextmanager
async def opened_calls(source: Settings, target: Settings) -> AsyncIterator[Calls | None]:
    """The agent databases to move service calls between; None if there are none, or both are the same database. Raises
    TransferRefused if the target has no place for them, StoreLocked if an agent runs."""
    if _same(source, target) or not await has_calls(source):
        yield None
        return
    async with _opened(source) as of_source:
        if not target.has_agent():
            if await is_empty(of_source):
                yield None
                return
            raise _no_place(source)
        async with _opened(target) as of_target:
            yield Calls(of_source, of_target)


async def refuse_calls(source: Settings, target: Settings) -> None:
    """Raises TransferRefused, ConfigError or StoreError if service calls could not be moved, as far as that can be seen while
    an agent uses the source."""
    if _same(source, target) or not await has_calls(source):
        return
    if target.has_agent():
        async with _opened(target) as of_target:
            await refuse_data(of_target, redacted(target.agent_database_url()))
        return
    require_driver(source.agent_database_url(), "agent.database")
    if await agent_database(source.agent_database_url(), source.agent_sql).has_calls():
        raise _no_place(source)


async def refuse_data(target: AgentDatabase, place: str) -> None:
    """Raises TransferRefused unless the target has no rows."""
    if not await is_empty(target):
        raise TransferRefused(f"--to: {place} has service calls already; name an empty agent.database")


def _same(source: Settings, target: Settings) -> bool:
    return target.has_agent() and target.agent_database_url() == source.agent_database_url()


def _no_place(source: Settings) -> TransferRefused:
    return TransferRefused(
        f"--to: {redacted(source.agent_database_url())} has service calls, and the target has no agent.database; name one, "
        "SQLite or PostgreSQL, in --to-config"
    )


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[AgentDatabase]:
    require_driver(settings.agent_database_url(), "agent.database")
    database = agent_database(settings.agent_database_url(), settings.agent_sql)
    try:
        await database.open()
        yield database
    finally:
        await database.close()


async def counted_calls(source: Settings, advance: Callable[[int], None]) -> int | None:
    """How many service calls there are; None if there can be none, or while an agent runs."""
    if not await has_calls(source):
        return None
    require_driver(source.agent_database_url(), "agent.database")
    database = agent_database(source.agent_database_url(), source.agent_sql)
    try:
        await database.open(wait_s=0.0)
        return (await measured_tables(database, advance))[0][CALLS_TABLE]
    except StoreLocked:
        return None
    finally:
        await database.close()


async def has_calls(source: Settings) -> bool:
    """Whether the source may have service calls: a file or tables that are missing have none."""
    if not source.has_agent():
        return False
    path = database_files(source).get(CALLS)
    if path is not None:
        return path.is_file()
    from tocsin.stores.service_calls.postgresql import missing_rights

    return (await missing_rights(source.agent_database_url(), source.agent_sql))[1] is not None
