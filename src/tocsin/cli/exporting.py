"""`tocsin timers export`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused
from tocsin.cli.options import ALL_TIMERS, LOCAL_SERVER, Format, Server, TimerFilters

PAGE_ROWS = 1_000


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
    form: Format = None,
    server: Server = LOCAL_SERVER,
) -> None:
    """Write all matching timers, in the order in which they are due, as CSV or JSON Lines."""
    from tocsin.cli.rows import CsvWriter, JsonLinesWriter, Page, format_of

    form = format_of(form, "" if target is None else target.name)
    body = filters.query(limit=PAGE_ROWS)
    count, started = 0, time.monotonic()
    with server.client() as client:
        # The first page before the file: a refused request must not leave an empty file behind.
        page = client.post_for(Page, "/timers/list", body)
        with opened_for_writing(target) as stream, output.progress("exporting", shown=target is not None) as advance:
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
def opened_for_writing(target: Path | None) -> Iterator[TextIO]:
    """The file, or standard output."""
    if target is None:
        yield sys.stdout
        return
    try:
        stream = target.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"--output: {target} can't be written: {error.strerror}") from error
    with stream:
        yield stream
