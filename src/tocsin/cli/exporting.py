"""`tocsin timers export`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused, WrongUsage
from tocsin.cli.options import ALL_TIMERS, LOCAL_SERVER, Server, TimerFilters

PAGE_ROWS = 1_000
FORMATS = ("csv", "jsonl")


def export(
    filters: TimerFilters = ALL_TIMERS,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file; its extension selects the format.",
            show_default="standard output",
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv or jsonl.", show_default="by the file's name, else jsonl")
    ] = None,
    server: Server = LOCAL_SERVER,
) -> None:
    """Write all matching timers, in the order in which they are due, as CSV or JSON Lines."""
    from tocsin.cli.rows import CsvWriter, JsonLinesWriter, Page

    form = form or ("csv" if target is not None and target.suffix.lower() == ".csv" else "jsonl")
    if form not in FORMATS:
        raise WrongUsage(f"--format: {form!r} is not one of csv, jsonl")
    body = filters.query(limit=PAGE_ROWS)
    count, started = 0, time.monotonic()
    with server.client() as client:
        # The first page before the file: a refused request must not leave an empty file behind.
        page = client.post_for(Page, "/timers/list", body)
        with _opened(target) as stream, _progress(target) as advance:
            writer = CsvWriter(stream) if form == "csv" else JsonLinesWriter(stream)
            while True:
                writer.write(page.timers)
                count += len(page.timers)
                advance(len(page.timers))
                if not page.cursor:
                    break
                page = client.post_for(Page, "/timers/list", body | {"cursor": page.cursor})
    took_s = max(1e-6, time.monotonic() - started)
    output.note(f"Exported {count:,} timers in {took_s:.1f} s ({count / took_s:,.0f}/s).")


@contextlib.contextmanager
def _opened(target: Path | None) -> Iterator[TextIO]:
    if target is None:
        yield sys.stdout
        return
    try:
        stream = target.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"--output: {target} can't be written: {error.strerror}") from error
    with stream:
        yield stream


@contextlib.contextmanager
def _progress(target: Path | None) -> Iterator[Any]:
    console = output.console(stderr=True)
    if target is None or not console.is_terminal:
        yield lambda rows: None
        return
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("exporting"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda rows: progress.advance(task, rows)
