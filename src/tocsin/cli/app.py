"""The root of the command line: assembles the commands, and turns failures into messages and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from tocsin.cli import (
    calendars,
    calls,
    config,
    credentials,
    databases,
    destinations,
    doctor,
    failures,
    flows,
    inbox,
    jobs,
    keys,
    mcp,
    monitors,
    namespaces,
    operations,
    schedules,
    serving,
    timers,
)
from tocsin.cli.command import EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_USAGE, Failure, SettingFlags, command
from tocsin.cli.declared import apply
from tocsin.cli.exec import run_monitored
from tocsin.model.visible import visible
from tocsin.private_files import keep_files_private

app = typer.Typer(
    name="tocsin",
    help="A durable timer service: tell it when; it fires, on time, at least once, even across crashes.",
    epilog="Example: tocsin demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    # Plain help: importing what draws the boxes takes longer than all the rest.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        doctor.version()
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


command(app, "serve", example="serve --port 9000 --data-dir /var/lib/tocsin", cls=SettingFlags)(serving.serve)
command(app, "demo", example="demo --plain")(serving.demo)
command(app, "dev", example="dev --data-dir /tmp/flow", cls=SettingFlags)(serving.dev)
app.add_typer(operations.clock, name="clock")
command(app, "echo", example="echo --port 9000 --fail-rate 0.2 --delay 50ms")(serving.echo)
app.add_typer(timers.app, name="timers")
app.add_typer(schedules.app, name="schedules")
command(app, "apply", example="apply -f tocsin.yaml --prune")(apply.apply)
command(app, "pull", example="pull --namespace billing --output tocsin.yaml")(apply.pull)
app.add_typer(failures.app, name="failures")
app.add_typer(destinations.app, name="destinations")
app.add_typer(calls.app, name="calls")
app.add_typer(jobs.app, name="jobs")
app.add_typer(namespaces.app, name="namespaces")
app.add_typer(flows.app, name="flows")
app.add_typer(calendars.app, name="calendars")
app.add_typer(credentials.app, name="credentials")
app.add_typer(monitors.app, name="monitors")
command(
    app,
    "exec",
    example="exec --monitor nightly-backup -- /opt/backup.sh --full",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(run_monitored)
app.add_typer(inbox.app, name="inbox")
command(app, "cluster", example="cluster --server http://timers.internal:8080")(operations.cluster)
command(app, "statistics", example="statistics --namespace orders --ten-minutes")(operations.statistics)
command(app, "metrics", example="metrics tocsin_commits tocsin_overdue_seconds")(operations.metrics)
app.add_typer(keys.app, name="keys")
app.add_typer(namespaces.tenants_app, name="tenants")
command(app, "audit", example="audit --action key_created --limit 20")(operations.audit)
command(app, "mcp", example="mcp --server https://tocsin.example")(mcp.mcp)
command(app, "doctor", example="doctor --data-dir /var/lib/tocsin")(doctor.doctor)
command(app, "migrate", example="migrate --data-dir /var/lib/tocsin")(databases.migrate)
command(app, "backup", example="backup /var/backups/tocsin/monday --data-dir /var/lib/tocsin")(databases.backup)
command(app, "restore", example="restore /var/backups/tocsin/monday --data-dir /var/lib/tocsin")(databases.restore)
command(app, "transfer", example="transfer --from sqlite:///data/tocsin.db --to postgresql://tocsin@db/tocsin")(
    databases.transfer
)
app.add_typer(config.app, name="config")
command(app, "version", example="version --json")(doctor.version)


@cache
def program() -> Callable[..., Any]:
    """The commands, as they are run. Making them of their functions takes as long as many a command."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code: 0 success, 1 refused, 2 usage error, 3 unreachable. Never a traceback."""
    try:
        program()(list(arguments), prog_name="tocsin")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Failure as failure:
        return _print_error(str(failure), failure.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001  (the outermost boundary: no traceback reaches the terminal)
        return _print_unexpected(error)
    return 0


def _print_unexpected(error: Exception) -> int:
    from tocsin.model.errors import ConfigError, TocsinError

    if isinstance(error, ConfigError):
        return _print_error(str(error), EXIT_USAGE)
    if isinstance(error, TocsinError | OSError):
        return _print_error(str(error), EXIT_REFUSED)
    text = f"unexpected {type(error).__name__}: {error}; please report it with the command you ran"
    return _print_error(text, EXIT_REFUSED)


def _print_error(text: str, exit_code: int) -> int:
    typer.echo(typer.style("Error: ", fg="red", bold=True) + visible(text, keep="\n"), err=True)
    return exit_code


def main() -> None:
    """The console script."""
    # Files that a command writes, such as exports and reports of failed imports, may contain secrets.
    keep_files_private()
    # Without this, httpx imports a command line of its own, which takes longer than all the rest of it.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    sys.exit(run(sys.argv[1:]))
