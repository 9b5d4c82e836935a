"""`tocsin version`."""

from __future__ import annotations

import platform

from tocsin.cli import output
from tocsin.cli.options import AsJson


def version(as_json: AsJson = False) -> None:
    """Show the versions of Tocsin, Python and SQLite."""
    import apsw

    import tocsin

    versions = {"tocsin": tocsin.__version__, "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    if as_json:
        output.print_json(versions)
    else:
        output.print_fields(versions)
