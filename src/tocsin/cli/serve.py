"""`tocsin serve`."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from tocsin.cli.options import AgentDatabase, ConfigFile, DataDir, Store
from tocsin.stores import TOTAL_SHARDS_DEFAULT, TOTAL_SHARDS_SHARED_DEFAULT

SHARDS_SHOWN = (
    f"the store's number; for a new store {TOTAL_SHARDS_DEFAULT}, on a database server {TOTAL_SHARDS_SHARED_DEFAULT}"
)


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="8080")
    ] = None,
    data_dir: DataDir = None,
    store: Store = None,
    shards: Annotated[
        int | None, typer.Option(help="Partitions of the timers, fixed at the first start.", show_default=SHARDS_SHOWN)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes that share the port.", show_default="1")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Address under which other nodes reach this one.", show_default="the host's address"
        ),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Broker of the agent's messages: nats://host:4222.", show_default="embedded"),
    ] = None,
    agent_database: AgentDatabase = None,
    agent_timer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="How the agent detects due calls: polling or engine.", show_default="polling"
        ),
    ] = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Disable the service agent: timers only.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Never require an API key.")] = False,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Log level: debug, info, warning or error.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(metavar="FORMAT", help="Log format: auto, console or json.")] = None,
    drain_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Time limit for callbacks in flight at shutdown.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Run a server. SIGTERM or Ctrl-C stops it after requests and callbacks in flight have finished; a second one stops it
    immediately, with exit code 143 or 130. While its database can't be reached at its start, it waits for it. With several
    workers, SIGHUP restarts them one after another.

    Every option is also a setting of the file and the environment (TOCSIN_PORT, …); `tocsin config show` lists them all.
    """
    # A reload that comes during the start would end the process; what it reloads is read later in the start anyway.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from tocsin.settings import load_settings, unknown_variables

    settings = load_settings(
        {
            "config": config,
            "host": host,
            "port": port,
            "data_dir": data_dir,
            "store": store,
            "shards": shards,
            "workers": workers,
            "advertise": advertise,
            "broker": broker,
            "agent_database": agent_database,
            "agent_timer": agent_timer,
            "agent_enabled": False if no_agent else None,
            "insecure": insecure or None,
            "log_level": log_level,
            "log_format": log_format,
            "drain_timeout": drain_timeout,
        }
    )
    for line in unknown_variables():
        typer.echo(f"Warning: {line}", err=True)
    from tocsin.server import serve as run_server

    raise typer.Exit(run_server(settings))
