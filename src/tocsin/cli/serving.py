"""Commands that run until they are stopped: `tocsin serve`, `dev`, `demo` and `echo`."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tocsin.cli import output
from tocsin.cli.options import AgentDatabase, AsJson, ConfigFile, DataDir, Store, duration_us
from tocsin.stores import TOTAL_SHARDS_DEFAULT, TOTAL_SHARDS_SHARED_DEFAULT

SHARDS_SHOWN = (
    f"the store's number; for a new store {TOTAL_SHARDS_DEFAULT}, on a database server {TOTAL_SHARDS_SHARED_DEFAULT}"
)


Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="8080")]
AgentTimer = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="How the agent detects due calls: polling or engine.", show_default="polling"),
]
NoAgent = Annotated[bool, typer.Option("--no-agent", help="Disable the service agent: timers only.")]
Insecure = Annotated[bool | None, typer.Option("--insecure", help="Never require an API key.")]
LogLevel = Annotated[str | None, typer.Option(metavar="LEVEL", help="Log level: debug, info, warning or error.")]
LogFormat = Annotated[str | None, typer.Option(metavar="FORMAT", help="Log format: auto, console or json.")]


#: Next to `data`, the folder of `tocsin serve`.
FOLDER = Path(".tocsin-dev")


@dataclass(frozen=True)
class ServeOptions:
    """Settings of a server."""

    host: Host = None
    port: Port = None
    data_dir: DataDir = None
    store: Store = None
    shards: Annotated[
        int | None, typer.Option(help="Partitions of the timers, fixed at the first start.", show_default=SHARDS_SHOWN)
    ] = None
    workers: Annotated[int | None, typer.Option(help="Number of processes that share the port.", show_default="1")] = (
        None
    )
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Address under which other nodes reach this one.", show_default="the host's address"
        ),
    ] = None
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Broker of the agent's messages: nats://host:4222.", show_default="embedded"),
    ] = None
    agent_database: AgentDatabase = None
    agent_timer: AgentTimer = None
    no_agent: NoAgent = False
    insecure: Insecure = None
    log_level: LogLevel = None
    log_format: LogFormat = None
    drain_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Time limit for callbacks in flight at shutdown.")
    ] = None
    config: ConfigFile = None


@dataclass(frozen=True)
class DevOptions:
    """Settings of a server with a clock that can be moved."""

    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Loopback address to listen on.", show_default="127.0.0.1")
    ] = None
    port: Port = None
    data_dir: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for all stored data, never that of `tocsin serve`.", show_default=True
        ),
    ] = FOLDER
    agent_timer: AgentTimer = None
    no_agent: NoAgent = False
    log_level: LogLevel = None
    log_format: LogFormat = None
    config: ConfigFile = None


def serve(*, options: ServeOptions) -> None:
    """Run a server. SIGTERM or Ctrl-C stops it after requests and callbacks in flight have finished; another one, a second
    later or more, stops it immediately, with exit code 143 or 130. While its database can't be reached at its start, it waits
    for it. With several workers, SIGHUP restarts them one after another. It ends with exit code 75 when `tocsin transfer
    --online` has moved its store.

    Every option is also a setting of the file and the environment (TOCSIN_PORT, …); `tocsin config show` lists them all.
    """
    # A reload that comes during the start would end the process; what it reloads is read later in the start anyway.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _run_server(options)


def dev(*, options: DevOptions) -> None:
    """Run a server with a clock that `tocsin clock advance` moves forward, to test flows of days in a second. It serves this
    machine only, and has a data folder of its own.

    After a restart with the same folder the clock is as far ahead as before.
    """
    _run_server(options, movable_clock=True)


def _run_server(options: ServeOptions | DevOptions, *, movable_clock: bool = False) -> NoReturn:
    from tocsin.settings import load_settings, unknown_variables

    settings = load_settings({**vars(options), "agent_enabled": False if options.no_agent else None})
    for line in unknown_variables():
        typer.echo(f"Warning: {line}", err=True)
    from tocsin.server import serve as run_server

    raise typer.Exit(run_server(settings, movable_clock=movable_clock))


def demo(
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the data.", show_default="a temporary folder")
    ] = None,
    agent: Annotated[bool, typer.Option("--agent", help="Show service calls instead of timers.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep serving at the end, until Ctrl-C.")] = False,
) -> None:
    """Watch timers fire: one immediately, one soon, one retried, one rescheduled, one canceled.

    With --agent: service calls, one now, one later, one to a dead host, one that gets a 503, one deleted, one sent twice.
    """
    import asyncio
    import tempfile

    from tocsin.cli.demos import CallsDemo, TimersDemo

    with contextlib.ExitStack() as stack:
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-demo-")))
        plain = plain or not output.console().is_terminal
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run((CallsDemo() if agent else TimersDemo()).play(folder, plain=plain, keep=keep))


FAILING_STATUS = 500


def echo(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 9_000,
    delay: Annotated[str, typer.Option(metavar="DURATION", help="Delay of each response.")] = "0s",
    fail_rate: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Share of callbacks that fail, with --status or 500."),
    ] = None,
    status: Annotated[
        int | None, typer.Option(min=200, max=599, help="Status of the response; with --fail-rate, of failures.")
    ] = None,
    reschedule: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Reschedule each timer by this much.")
    ] = None,
    times: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --reschedule: the number of times for each timer.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print one line per second with the rate instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Receive callbacks and print each with its time, attempt, lag (of first attempts) and payload. Stop with Ctrl-C."""
    from tocsin.cli.receiver import Behaviour, listen

    behaviour = Behaviour(
        delay_s=duration_us("--delay", delay) / 1e6,
        fail_rate=fail_rate,
        status=status or (FAILING_STATUS if fail_rate is not None else 200),
        reschedule_us=None if reschedule is None else duration_us("--reschedule", reschedule),
        times=times,
    )
    listen(host, port, behaviour, quiet=quiet, as_json=as_json)
