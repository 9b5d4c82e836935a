"""`tocsin migrate`, `tocsin backup` and `tocsin restore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.options import LOCAL_STORE, AgentDatabase, AsJson, StoreOptions

if TYPE_CHECKING:
    from tocsin.server.backup import Backup
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
    output.print_result(asyncio.run(_migrate(settings)), as_json)


async def _migrate(settings: Settings) -> dict[str, Any]:
    from tocsin.model.setting_values import redacted
    from tocsin.server.extras import require_driver
    from tocsin.server.stores import newest_schema, open_store

    opened = open_store(settings, memory=False)
    if settings.has_agent():
        require_driver(settings.agent_database_url(), "agent.database")
    try:
        shards = await opened.open(settings.shards)
    finally:
        await opened.close()
    result = {"store": settings.store_url_redacted(), "schema": newest_schema(settings), "shards": shards}
    if not settings.has_agent():
        return result
    from tocsin.stores.service_calls.database import agent_database

    database = agent_database(settings.agent_database_url(), settings.agent_sql)
    try:
        await database.open()
        return result | {
            "agentDatabase": redacted(settings.agent_database_url()),
            "agentSchema": database.schema_version,
        }
    finally:
        await database.close()


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder for the backup.")],
    store: StoreOptions = LOCAL_STORE,
    agent_database: AgentDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Copy the SQLite databases of a server, timers and service calls, while it runs. The copies contain secrets.
    PostgreSQL, MySQL and DynamoDB have tools of their own."""
    from tocsin.server.backup import back_up, elsewhere

    settings = store.settings(agent_database=agent_database)
    _show_files(back_up(settings, folder), as_json=as_json)
    if others := elsewhere(settings):
        output.note(others)


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `tocsin backup` has filled.")],
    pause: Annotated[
        bool, typer.Option("--pause", help="Pause all namespaces, so that no timer fires at first.")
    ] = False,
    store: StoreOptions = LOCAL_STORE,
    agent_database: AgentDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into place. Refused while a server uses the data folder, and where data are already. Stop every server of
    the former data first: it would fire the same timers."""
    from tocsin.server.backup import restore as put_back

    settings = store.settings(agent_database=agent_database)
    _show_files(put_back(settings, folder, pause=pause), as_json=as_json)
    if pause:
        output.note("All namespaces are paused; `tocsin namespaces update NAME --resume` resumes one.")


def _show_files(backup: Backup, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        output.print_json(msgspec.to_builtins(backup))
    else:
        output.print_table(
            ("file", "bytes", "SHA-256"), [(file.name, file.bytes, file.sha256) for file in backup.files]
        )
