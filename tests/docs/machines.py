"""What each page finds on the machine that it is read on, and which blocks are not run, with the reason."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """What is there before the reader types the first command of a page."""

    #: Whether the page itself says how `tocsin` comes onto the PATH, as the first pages do; all others take it for granted.
    bare: bool = False
    #: Commands of terminals that are open already, such as a server that the page takes for granted.
    running: tuple[str, ...] = ()
    #: Commands that were typed before, in the reader's own terminal.
    before: str = ""
    postgresql: bool = False
    mysql: bool = False


_SERVE, _ECHO = "tocsin serve", "tocsin echo --port 9000"
#: A database, and a role that may do nothing elsewhere.
_ROLE = """psql --quiet --dbname postgres --command "CREATE ROLE tocsin LOGIN PASSWORD 'secret'" """

MACHINES = {
    "README.md": Machine(bare=True),
    "docs/tutorial/first-timer.md": Machine(bare=True),
    "docs/tutorial/service-calls.md": Machine(bare=True),
}

#: By page and line of text in the block: why it is not run.
NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/explanation/performance.md", "make bench"): "measures for minutes; tests/unit/bench tries its parts",
}
