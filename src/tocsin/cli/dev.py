"""`tocsin dev`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.options import ConfigFile

#: Beside `data`, the folder of `tocsin serve`.
FOLDER = Path(".tocsin-dev")


def dev(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Loopback address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="8080")
    ] = None,
    data_dir: Annotated[
        Path,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Folder for all stored data, never that of `tocsin serve`.",
            show_default=True,
        ),
    ] = FOLDER,
    agent_timer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="How the agent detects due calls: polling or engine.", show_default="polling"
        ),
    ] = None,
    no_agent: Annotated[bool, typer.Option("--no-agent", help="Disable the service agent: timers only.")] = False,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Log level: debug, info, warning or error.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(metavar="FORMAT", help="Log format: auto, console or json.")] = None,
    config: ConfigFile = None,
) -> None:
    """Run a server with a clock that `tocsin clock advance` moves forward, to test flows of days in a second. It serves this
    machine only, and has a data folder of its own.

    After a restart with the same folder the clock is as far ahead as before.
    """
    from tocsin.settings import load_settings, unknown_variables

    settings = load_settings(
        {
            "config": config,
            "host": host,
            "port": port,
            "data_dir": data_dir,
            "agent_timer": agent_timer,
            "agent_enabled": False if no_agent else None,
            "log_level": log_level,
            "log_format": log_format,
        }
    )
    for line in unknown_variables():
        typer.echo(f"Warning: {line}", err=True)
    from tocsin.server import serve as run_server

    raise typer.Exit(run_server(settings, movable_clock=True))
