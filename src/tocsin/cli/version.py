"""`tocsin version`."""

from __future__ import annotations

import platform

import typer

from tocsin.cli import output
from tocsin.cli.options import AsJson


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("version", epilog="Example: tocsin version --json")(version)


def version(as_json: AsJson = False) -> None:
    """Show the versions of Tocsin, Python and SQLite."""
    import apsw

    import tocsin

    versions = {"tocsin": tocsin.__version__, "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    if as_json:
        output.print_json(versions)
    else:
        output.print_fields(versions)
