"""Output of the commands: tables for people, JSON for programs. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tocsin.cli.command import Refused
from tocsin.model.visible import JOINERS, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

STATUS_STYLES = {
    "pending": "cyan",
    "completed": "green",
    "failed": "bold red",
    "canceled": "yellow",
    "expired": "bold red",
    "rescheduled": "green",
    "superseded": "yellow",
    "Scheduled": "cyan",
    "Running": "blue",
    "Retrying": "yellow",
    "Succeeded": "green",
    "Failed": "bold red",
    "deleted": "yellow",
}


def console(*, stderr: bool = False) -> Console:
    """A console that does not truncate values if the output is a file or a pipe."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, highlight=False, width=200)
    return made


def shown(value: object, style: str = "", *, name: bool = False) -> Text:
    """A cell with text from the server: without markup, and with invisible and control characters as code points. Names keep
    their joiners."""
    from rich.text import Text

    return Text("" if value is None else visible(str(value), keep="\n" + JOINERS if name else "\n"), style=style)


def print_plain(text: str) -> None:
    """Prints an unstyled line."""
    typer.echo(visible(text, keep="\n"))


def print_json(value: Any) -> None:
    """Prints a JSON document on one line."""
    import msgspec

    sys.stdout.write(visible(msgspec.json.encode(value).decode()) + "\n")


def plain_table(*columns: Column | str, expand: bool = False) -> Table:
    """A table without lines between its rows."""
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, expand=expand)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a plain table; values are never interpreted as markup."""
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*(shown(cell, STATUS_STYLES.get(str(cell), "")) for cell in row))
    console().print(table)


def print_page(
    page: Mapping[str, Any], as_json: bool, what: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Prints a page of a list: as it was received, or its rows and the cursor of the next page."""
    if as_json:
        print_json(page)
        return
    print_table(columns, rows)
    if page.get("nextCursor"):
        note(f"More {what}: --cursor {page['nextCursor']}")


def print_objects(
    page: Mapping[str, Any], as_json: bool, what: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Prints a page of a list whose columns are fields of its rows."""
    print_page(page, as_json, what, columns, ([cell(each.get(name)) for name in columns] for each in rows))


def print_object(shown: Mapping[str, Any], as_json: bool, **replaced: object) -> None:
    """Prints an object of a response: as JSON, or its fields, some of them replaced."""
    if as_json:
        print_json(shown)
    else:
        print_fields({name: cell(value) for name, value in {**shown, **replaced}.items()})


def print_groups(columns: Sequence[str], groups: Mapping[str, Sequence[Sequence[object]]]) -> None:
    """One table with a heading before the rows of each group that has any."""
    from rich.text import Text

    table = plain_table(*columns)
    for title, rows in groups.items():
        if rows and table.rows:
            table.add_row()
        if rows:
            table.add_row(Text(title, style="bold"))
        for row in rows:
            table.add_row(*(shown(cell) for cell in row))
    console().print(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Prints one object: a line for each field with a value. `name` is prose, and may have joiners."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, value in fields.items():
        if value is not None:
            text = shown(value, STATUS_STYLES.get(str(value), ""), name=name == "name")
            text.overflow = "fold"
            grid.add_row(Text(name, style="bold"), text)
    console().print(grid)


def print_result(result: Mapping[str, object], as_json: bool) -> None:
    """Prints one object: as JSON, or as its fields."""
    if as_json:
        print_json(result)
    else:
        print_fields(result)


def print_row(row: Mapping[str, Any], instants: Sequence[str], **replaced: object) -> None:
    """Prints the fields of a timer or schedule: those that are `instants` with their distance from now, and some replaced."""
    fields = {name: value if isinstance(value, str | int | float) else compact(value) for name, value in row.items()}
    for name in instants:
        if fields.get(name):
            fields[name] = f"{fields[name]} ({relative(row[name])})"
    print_fields({**fields, **replaced})


def note(text: str) -> None:
    """Prints a line for people, on stderr."""
    typer.echo(visible(text, keep="\n"), err=True)


def print_line(parts: Iterable[tuple[str, str]]) -> None:
    """Prints a line of texts, each with its style."""
    from rich.text import Text

    console().print(Text.assemble(*((visible(text), style) for text, style in parts)), soft_wrap=True)


@contextlib.contextmanager
def progress(what: str, *, total: int | None = None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, if that is a terminal. Yields what advances it by a number of rows."""
    bars = console(stderr=True)
    if not shown or not bars.is_terminal:
        yield lambda rows: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    time_column = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), time_column)
    with Progress(*columns, console=bars, transient=True) as running:
        task = running.add_task("", total=total)
        yield lambda rows: running.advance(task, rows)


def each_done(ids: Iterable[str], act: Callable[[str], object], done: str) -> None:
    """Does something to each of these, and notes for each that it is `done`. Raises Refused with all that were refused."""
    refused = []
    for each in ids:
        try:
            act(each)
            note(f"{each} is {done}.")
        except Refused as refusal:
            refused.append(f"{each}: {refusal}")
    if refused:
        raise Refused("\n".join(refused))


#: How far the server's clock is ahead of this machine's, as far as `server_shows` has learned it.
_ahead_us = 0


def server_shows(instant: str) -> None:
    """The server's clock, which can be moved, shows this instant: what is relative to now counts from it."""
    from tocsin.model.instants import parse_instant

    global _ahead_us
    _ahead_us = parse_instant(instant) - time.time_ns() // 1_000


def status(of: dict[str, Any]) -> str:
    """The status of a timer or schedule, with the reason if it is suspended: `pending (egress)`; of an explained timer what
    it does: `firing`, `waiting (destination)`."""
    explanation = of.get("explanation", {"state": "suspended"})
    state, waits_for = explanation["state"], explanation.get("waitsFor")
    if state != "suspended":
        return f"{state} ({waits_for})" if waits_for and state in ("waiting", "blocked") else str(state)
    reason = of.get("suspended", "").partition(":")[0]
    return f"{of['status']} ({reason})" if reason else str(of["status"])


def scope_column(listed: str | None, shown: str) -> tuple[str, ...]:
    """The column of namespaces or tenants in a list of all of them; a list of one has none."""
    from tocsin.model.access import EVERY

    return (shown,) if listed == EVERY else ()


def relative(instant: str | None) -> str:
    """The approximate distance of an instant from now: `in 5m`, `2h ago`."""
    if not instant:
        return ""
    from tocsin.model.instants import format_duration, parse_instant

    distance_us = parse_instant(instant) - time.time_ns() // 1_000 - _ahead_us
    size = abs(distance_us)
    for unit in (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000):
        if size >= unit:
            size -= size % unit
            break
    text = format_duration(size) if size >= 1_000 else "0s"
    return f"in {text}" if distance_us >= 0 else f"{text} ago"


def cell(value: object) -> object:
    """A value of a response, as shown in a table: `yes` or `no` for a truth value, words for a list, JSON for an object."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(value)
    return compact(value) if isinstance(value, dict) else value


def compact(value: Any) -> str | None:
    """A JSON value on one line; None for none."""
    if value is None or value in ({}, []):
        return None
    import msgspec

    return msgspec.json.encode(value).decode()
