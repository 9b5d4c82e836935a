"""`tocsin migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.options import LOCAL_STORE, AgentDatabase, AsJson, StoreOptions

if TYPE_CHECKING:
    from tocsin.settings import Settings


def migrate(
    store: StoreOptions = LOCAL_STORE,
    agent_database: AgentDatabase = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Only the timers' store.")] = False,
    as_json: AsJson = False,
) -> None:
    """Migrate the schemas of the store and of the agent's database to this version, creating them if needed. `serve` does
    the same at its start. Stop the server first."""
    import asyncio

    settings = store.settings(agent_database=agent_database, agent_enabled=False if no_agent else None)
    result = asyncio.run(_migrate(settings))
    if as_json:
        output.print_json(result)
    else:
        output.print_fields(result)


async def _migrate(settings: Settings) -> dict[str, Any]:
    from tocsin.server.stores import newest_schema, open_store
    from tocsin.settings.values import redacted
    from tocsin.stores.service_calls.database import agent_database

    opened = open_store(settings, memory=False)
    try:
        shards = await opened.open(settings.shards)
    finally:
        await opened.close()
    result = {"store": settings.store_url_redacted(), "schema": newest_schema(settings), "shards": shards}
    if not settings.has_agent():
        return result
    database = agent_database(settings.agent_database_url(), settings.agent_sql)
    try:
        await database.open()
        return result | {
            "agentDatabase": redacted(settings.agent_database_url()),
            "agentSchema": database.schema_version,
        }
    finally:
        await database.close()
