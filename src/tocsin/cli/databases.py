"""`tocsin migrate`, `tocsin backup`, `tocsin restore` and `tocsin transfer`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import WrongUsage
from tocsin.cli.options import AgentDatabase, AsJson, StoreOptions
from tocsin.cli.serving import SHARDS_SHOWN

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tocsin.server.backup import Backup
    from tocsin.server.transfer_rows import Contents
    from tocsin.settings import Settings

_FILE_SCHEME = "sqlite:///"
#: What a transfer counts, as far as it does.
_COUNTS = ("timers", "schedules", "notifications", "events", "history", "runs", "failures", "calls")


def migrate(
    *,
    store: StoreOptions,
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
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder for the backup.")],
    store: StoreOptions,
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
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `tocsin backup` has filled.")],
    pause: Annotated[
        bool, typer.Option("--pause", help="Pause all namespaces and jobs, so that nothing fires at first.")
    ] = False,
    store: StoreOptions,
    agent_database: AgentDatabase = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into place. Refused while a server uses the data folder, and where data are already. Stop every server of
    the former data first: it would fire the same timers."""
    from tocsin.server.backup import restore as put_back

    settings = store.settings(agent_database=agent_database)
    _show_files(put_back(settings, folder, pause=pause), as_json=as_json)
    if pause:
        output.note(
            "All namespaces and jobs are paused; `tocsin namespaces update NAME --resume` and `tocsin jobs resume ID` resume "
            "one."
        )


def transfer(
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="The store to move; that of its settings file by default."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="The empty store to move it to; likewise.")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Partitions of the timers in the target.", show_default=SHARDS_SHOWN),
    ] = None,
    source_config: Annotated[
        Path | None, typer.Option("--from-config", metavar="FILE", help="TOML file with settings of the source.")
    ] = None,
    target_config: Annotated[
        Path | None, typer.Option("--to-config", metavar="FILE", help="TOML file with settings of the target.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be moved; servers may run.")
    ] = False,
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="The servers of the source go on; at the end they are paused for seconds, and exit."
        ),
    ] = False,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Cancel a transfer with --online that has not switched over; needs no --to."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move everything from one store to another, of any kind and with any number of shards: timers, schedules, history, keys
    and all else. Stop the servers of both first, or move with --online. Afterwards, servers refuse to start with the source.

    A transfer that was interrupted continues when the same command is run again. The target must be empty: a database,
    schema, keyspace, table or file of its own.
    """
    import asyncio

    from tocsin.server.transfer import cancel as cancel_online
    from tocsin.server.transfer import plan, transfer_online
    from tocsin.server.transfer import transfer as move

    if source is None and source_config is None:
        raise WrongUsage("--from: name the store to move, or its settings file with --from-config")
    if cancel:
        asyncio.run(cancel_online(_of_source(source, source_config)))
        output.note("The transfer is canceled; the servers go on with the source.")
        return
    if target is None and target_config is None:
        raise WrongUsage("--to: name the store to move it to, or its settings file with --to-config")
    of_source, of_target = _of_source(source, source_config), _of_target(target, target_config, shards)
    _note_absent_calls(of_source)
    paused_s: float | None = None
    if dry_run:
        contents = asyncio.run(plan(of_source, of_target, _progress))
    elif online:
        contents, paused_s = asyncio.run(transfer_online(of_source, of_target, _progress))
    else:
        contents = asyncio.run(move(of_source, of_target, _progress))
    _show_contents(contents, as_json=as_json)
    if paused_s is not None:
        output.note(f"From the request to pause until the new store could be used it took {paused_s:.1f} s.")
    if not dry_run:
        output.note(f"Start the servers with {of_target.store_url_redacted()}; the source is no longer used.")


def _of_source(url: str | None, config: Path | None) -> Settings:
    """The source's settings. Its data folder, where service calls are, is the one that its servers' settings name, wherever
    the store's file is; by default the file's folder."""
    flags = {"store": url, "config": config}
    return _settings(flags, data_dir=None if _names_folder(flags) else _folder_of(url))


def _of_target(url: str | None, config: Path | None, shards: int | None) -> Settings:
    """The target's settings. Its data folder is that of the store's file unless its settings file names another: one that
    the environment names is rather the source's."""
    flags = {"store": url, "config": config, "shards": shards}
    return _settings(flags, data_dir=None if config is not None and _names_folder(flags) else _folder_of(url))


def _names_folder(flags: dict[str, Any]) -> bool:
    from tocsin.settings import Origin, sources

    return sources(flags)["data_dir"].origin is not Origin.DEFAULT


def _folder_of(url: str | None) -> Path | None:
    """The folder of a store that is a file."""
    return Path(url.removeprefix(_FILE_SCHEME)).parent if url is not None and url.startswith(_FILE_SCHEME) else None


def _settings(flags: dict[str, Any], data_dir: Path | None) -> Settings:
    from tocsin.settings import Origin, load_settings, sources

    flags = flags | {"data_dir": data_dir}
    if (config := flags["config"]) is not None:
        # The environment goes before a file: both sides would have the same database.
        found = sources(flags)
        places = [found[field] for field in ("store", "agent_database", "data_dir")]
        if around := [source.place for source in places if source.origin is Origin.ENVIRONMENT]:
            raise WrongUsage(f"{', '.join(around)} would replace what {config} names; leave it out of the environment")
    return load_settings(flags)


def _note_absent_calls(source: Settings) -> None:
    """States where no service calls were found, before timers move without them: only the servers' settings state
    whether they run an agent, and where its database is."""
    from tocsin.server.backup import CALLS, database_files

    calls = database_files(source).get(CALLS)
    if source.has_agent() and calls is not None and not calls.exists():
        output.note(
            f"There is no {calls}, so no service calls are moved. If the servers keep theirs elsewhere, stop this, and name "
            "their settings with --from-config."
        )


def _progress(what: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    return output.progress(what, total=total)


def _show_contents(contents: Contents, *, as_json: bool) -> None:
    counts = {name: getattr(contents, name) for name in _COUNTS}
    if as_json:
        output.print_json(counts | {"digest": contents.digest})
    else:
        output.print_table(("what", "rows"), [(name, f"{n:,}") for name, n in counts.items() if n is not None])


def _show_files(backup: Backup, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        output.print_json(msgspec.to_builtins(backup))
    else:
        output.print_table(
            ("file", "bytes", "SHA-256"), [(file.name, file.bytes, file.sha256) for file in backup.files]
        )
