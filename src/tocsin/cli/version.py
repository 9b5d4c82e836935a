"""`tocsin version`."""

from __future__ import annotations

import platform

from tocsin.cli import output
from tocsin.cli.options import AsJson


def version(as_json: AsJson = False) -> None:
    """Show the version of Tocsin and the commit it was built from, and the versions of Python and SQLite."""
    import apsw

    import tocsin
    from tocsin.build_info import commit

    versions = {
        "tocsin": tocsin.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    if as_json:
        output.print_json(versions)
    else:
        output.print_fields(versions)
