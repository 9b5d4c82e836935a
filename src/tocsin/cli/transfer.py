"""`export` and `import` of timers: files of any size, written page by page, and sent in large batches."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from tocsin.cli import output
from tocsin.cli.command import Interrupted, Refused, Unreachable, WrongUsage
from tocsin.cli.options import AsJson, Format, ServerOptions, TimerFilterOptions

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tocsin.cli.client import Client
    from tocsin.cli.rows import BadRow, BatchResult, CsvWriter, JsonLinesWriter, Page

#: Rows of a page of an export, and of a batch of an import.
PAGE_ROWS = BATCH_ROWS = 1_000
#: Payload bytes of a batch, so that the body of a thousand large timers stays within the server's limit.
BATCH_BYTES_MAX = 4 * 1024 * 1024
IN_FLIGHT_DEFAULT = 4
#: Errors that are printed; the report has all.
ERRORS_SHOWN_MAX = 5


AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", help="Those of every namespace that the key reaches.")]


def export_timers(
    *,
    filters: TimerFilterOptions,
    all_namespaces: AllNamespaces = False,
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
    server: ServerOptions,
) -> None:
    """Write all matching timers of a namespace, in the order in which they are due, as CSV or JSON Lines."""
    from tocsin.cli.rows import CsvWriter, JsonLinesWriter, format_of

    writer = CsvWriter if format_of(form, "" if target is None else target.name) == "csv" else JsonLinesWriter
    started = time.monotonic()
    count = _export(server, filters.query(limit=PAGE_ROWS), all_namespaces, target, writer)
    took_s = max(1e-6, time.monotonic() - started)
    output.note(f"Exported {count:,} timers in {took_s:.1f} s ({count / took_s:,.0f}/s).")


def _export(
    server: ServerOptions,
    body: Mapping[str, Any],
    all_namespaces: bool,
    target: Path | None,
    writer_of: Callable[[TextIO], CsvWriter | JsonLinesWriter],
) -> int:
    """Writes all pages of the list. The number of rows."""
    if all_namespaces and body["namespace"] != "default":
        raise WrongUsage("--namespace and --all-namespaces conflict; give only one of them")
    count = 0
    with server.client() as client:
        pages = _pages(client, body, all_namespaces)
        # The first page before the file: a refused request must not leave an empty file behind.
        page = next(pages, None)
        with opened_for_writing(target) as stream, output.progress("exporting", shown=target is not None) as advance:
            writer = writer_of(stream)
            while page is not None:
                writer.write(page.timers)
                count += len(page.timers)
                advance(len(page.timers))
                page = next(pages, None)
    return count


def _pages(client: Client, body: Mapping[str, Any], all_namespaces: bool) -> Iterator[Page]:
    """The pages of the list, or of the lists of all namespaces but the server's own, into which nothing can be imported."""
    from tocsin.cli.rows import Page
    from tocsin.model.namespace import RESERVED_PREFIX

    names = [body["namespace"]]
    if all_namespaces:
        known = client.post("/namespaces/list", {})["namespaces"]
        names = [each["name"] for each in known if not each["name"].startswith(RESERVED_PREFIX)]
    for name in names:
        cursor: dict[str, str] = {}
        while True:
            page = client.post_for(Page, "/timers/list", {**body, "namespace": name, **cursor})
            yield page
            if not page.cursor:
                break
            cursor = {"cursor": page.cursor}


class Unreadable(WrongUsage):
    """The imported file can't be read, or not any further."""


@dataclass
class ImportedRow:
    """A timer to create, with its line number. `new_key`: its idempotency key was made for it, and never sent."""

    line: int
    timer: dict[str, Any]
    new_key: bool


@dataclass
class ImportTally:
    """The result of the import. `unread_from` is the first line that was not sent, if the import stopped early."""

    created: int = 0
    failed: int = 0
    skipped: int = 0
    unread_from: int | None = None
    stopped_by: Unreachable | Interrupted | Refused | None = None
    shown: list[str] = field(default_factory=list)


def import_timers(
    *,
    source: Annotated[str, typer.Argument(metavar="FILE", help="CSV or JSON Lines; - for standard input.")],
    form: Format = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of rows that don't name one.")
    ] = "default",
    errors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Report of the failed rows.", show_default="FILE.errors.jsonl")
    ] = None,
    include_finished: Annotated[
        bool, typer.Option("--include-finished", help="Also create timers that the file shows as finished.")
    ] = False,
    from_line: Annotated[
        int, typer.Option(min=1, metavar="N", help="Skip the lines before this one, and add to the report.")
    ] = 1,
    in_flight: Annotated[int, typer.Option(min=1, max=64, help="Batches in flight at once.")] = IN_FLIGHT_DEFAULT,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create the timers of a file. Failed rows go to a report, which can be corrected and imported in turn.

    A row without an id gets a new one. Importing a row again replaces its pending timer: if all rows have ids, an
    interrupted import can be repeated. Rows of the report have idempotency keys, by which the server recognises a timer
    that was created although no response arrived.
    """
    from tocsin.cli.rows import format_of

    report_path = errors or Path("import.errors.jsonl" if source == "-" else source + ".errors.jsonl")
    if source != "-" and report_path.resolve() == Path(source).resolve():
        raise WrongUsage(f"--errors: {report_path} is the imported file; give another")
    started, tally = time.monotonic(), ImportTally()
    # What goes on after earlier lines has the rows that failed among these in its report, too: they are not sent again.
    report_of = _Report(report_path, appends=from_line > 1)
    with opened_for_reading(source) as stream, report_of as report, server.client() as client:
        rows = _rows(stream, format_of(form, source), namespace, from_line, None if include_finished else tally)
        with output.progress("importing", total=_lines(source)) as advance:
            _Importer(client, report, in_flight, advance, tally).run(rows, from_line)
    took_s = max(1e-6, time.monotonic() - started)
    _conclude(tally, report_path, took_s, as_json)


def _rows(
    stream: TextIO, form: str, namespace: str, from_line: int, skipping: ImportTally | None
) -> Iterator[ImportedRow | tuple[int, str]]:
    """The rows of the file from a line on; an invalid one is a (line number, reason) tuple. With `skipping`, finished timers
    are left out and counted there."""
    from tocsin.cli.rows import READ_ONLY, BadRow

    for line, row in _parsed(stream, form):
        if line < from_line:
            continue
        if isinstance(row, BadRow):
            yield line, str(row)
        elif skipping is not None and _text(row.get("status", "pending")) not in ("pending", "null"):
            skipping.skipped += 1
        else:
            timer = {name: row[name] for name in row if name not in READ_ONLY}
            timer.setdefault("namespace", namespace)
            if "id" not in timer:
                timer["id"] = str(uuid.uuid4())
            # The client retries after a 503, whose outcome may be unknown: the timer must not fire twice.
            if new_key := "idempotencyKey" not in timer:
                timer["idempotencyKey"] = str(uuid.uuid4())
            yield ImportedRow(line, timer, new_key)


def _parsed(stream: TextIO, form: str) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """The rows of the file with their line numbers. Raises Unreadable where it is no file of that format, or the
    system can't read it."""
    from tocsin.cli.rows import BadRow, read_csv, read_json_lines

    try:
        yield from read_csv(stream) if form == "csv" else read_json_lines(stream)
    except BadRow as error:
        raise Unreadable(f"FILE: can't be imported: {error}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"FILE: is not UTF-8 text ({error.reason})") from None
    except OSError as error:
        raise Unreadable(f"FILE: can't be read: {error.strerror}") from error


class _Report:
    """The failed rows, as JSON Lines; the file exists only if there are any. `appends`: they follow what it has."""

    def __init__(self, path: Path, *, appends: bool) -> None:
        self._path = path
        self._mode: Literal["a", "w"] = "a" if appends else "w"
        self._stream: TextIO | None = None

    def __enter__(self) -> _Report:
        return self

    def __exit__(self, *ended: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, line: int, error: str, timer: dict[str, Any] | None) -> None:
        import msgspec

        if self._stream is None:
            try:
                self._stream = self._path.open(self._mode, encoding="utf-8")
            except OSError as problem:
                raise Refused(f"--errors: {self._path} can't be written: {problem.strerror}") from problem
        entry = {"line": line, "error": error, "timer": timer}
        self._stream.write(msgspec.json.encode(entry).decode() + "\n")


class _Importer:
    def __init__(
        self, client: Client, report: _Report, in_flight: int, advance: Callable[[int], None], tally: ImportTally
    ) -> None:
        self._client = client
        self._report = report
        self._in_flight = in_flight
        self._advance = advance
        self._tally = tally

    def run(self, rows: Iterable[ImportedRow | tuple[int, str]], unsent: int) -> None:
        """Sends all batches; after an Unreachable, Ctrl-C or where the file can't be read any more, it only waits for those
        in flight. `unsent` is the first line. Raises Unreadable if nothing was sent before."""
        from concurrent.futures import ThreadPoolExecutor

        first = unsent
        in_flight: dict[Future[list[BatchResult]], list[ImportedRow]] = {}
        with ThreadPoolExecutor(self._in_flight, thread_name_prefix="tocsin-import") as threads:
            try:
                for batch in self._batches(rows):
                    in_flight[threads.submit(self._send, batch)] = batch
                    unsent = batch[-1].line + 1
                    self._settle(in_flight, self._in_flight)
                    if self._tally.stopped_by is not None:
                        break
            except KeyboardInterrupt:
                self._tally.stopped_by = Interrupted("interrupted")
            except Unreadable as error:
                if unsent == first:
                    raise
                self._tally.stopped_by = Refused(str(error))
            self._settle(in_flight, 1)
        if self._tally.stopped_by is not None:
            self._tally.unread_from = unsent

    def _batches(self, rows: Iterable[ImportedRow | tuple[int, str]]) -> Iterator[list[ImportedRow]]:
        batch: list[ImportedRow] = []
        size = 0
        for row in rows:
            if isinstance(row, tuple):
                self._fail(row[0], row[1], None)
                continue
            batch.append(row)
            size += sum(len(bytes(row.timer[name])) for name in ("payload", "body") if name in row.timer)
            if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES_MAX:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _send(self, batch: list[ImportedRow]) -> list[BatchResult]:
        from tocsin.cli.rows import BatchResults

        results: list[BatchResult] = self._client.post_for(
            BatchResults,
            "/timers/batch/create",
            {"timers": [row.timer for row in batch]},
            new_keys=all(row.new_key for row in batch),
        ).results
        return results

    def _settle(self, in_flight: dict[Future[list[BatchResult]], list[ImportedRow]], fewer_than: int) -> None:
        """Waits until fewer than `fewer_than` batches are in flight, and records their results."""
        from concurrent.futures import FIRST_COMPLETED, wait

        while len(in_flight) >= fewer_than:
            for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
                batch = in_flight.pop(future)
                self._advance(len(batch))
                try:
                    errors = [result.error for result in future.result()]
                except (Unreachable, Refused) as error:
                    if isinstance(error, Unreachable):
                        self._tally.stopped_by = error
                    errors = [str(error)] * len(batch)
                errors += ["no answer"] * (len(batch) - len(errors))
                for row, problem in zip(batch, errors, strict=False):
                    if problem is None:
                        self._tally.created += 1
                    else:
                        self._fail(row.line, _reason(problem), row.timer)

    def _fail(self, line: int, reason: str, timer: dict[str, Any] | None) -> None:
        self._tally.failed += 1
        if len(self._tally.shown) < ERRORS_SHOWN_MAX:
            self._tally.shown.append(f"line {line}: {reason}")
        self._report.add(line, reason, timer)


def _reason(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    fields = "; ".join(f"{bad.get('path')}: {bad.get('reason')}" for bad in error.get("errors") or [])
    return f"{error.get('error', 'refused')}: {fields or error.get('message') or error.get('detail') or ''}"


def _text(value: Any) -> str:
    """The text of a JSON string (JSON Lines) or a plain one (CSV)."""
    return value if isinstance(value, str) else bytes(value).decode().strip('"')


def _lines(source: str) -> int | None:
    """The number of lines, which only the terminal shows; None for standard input."""
    if source == "-" or not sys.stderr.isatty():
        return None
    with Path(source).open("rb") as counted:
        return sum(1 for _ in counted)


def _conclude(tally: ImportTally, report: Path, took_s: float, as_json: bool) -> None:
    rate = tally.created / took_s
    if as_json:
        output.print_json(
            {
                "created": tally.created,
                "failed": tally.failed,
                "skipped": tally.skipped,
                "seconds": round(took_s, 3),
                "ratePerSecond": round(rate),
                "report": str(report) if tally.failed else None,
                "unreadFromLine": tally.unread_from,
            }
        )
    else:
        skipped = f", skipped {tally.skipped:,} finished ones" if tally.skipped else ""
        output.note(f"Created {tally.created:,} timers in {took_s:.1f} s ({rate:,.0f}/s){skipped}.")
    lines = [*tally.shown]
    if tally.failed:
        more = " The first of them:" if tally.failed > len(lines) else ""
        rows = "row" if tally.failed == 1 else "rows"
        lines.insert(0, f"{tally.failed:,} {rows} failed; {report} lists them all, to correct and import again.{more}")
    if tally.stopped_by is not None:
        lines.append(f"{tally.stopped_by}\nThe rest was not sent; continue with --from-line {tally.unread_from}")
        raise type(tally.stopped_by)("\n".join(lines))
    if tally.failed:
        raise Refused("\n".join(lines))


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


@contextlib.contextmanager
def opened_for_reading(source: str) -> Iterator[TextIO]:
    """The file, or standard input for `-`."""
    if source == "-":
        # As a file is read: by its locale, Python may let bytes pass that are no text, and change ends of lines in cells.
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict", newline="")
        yield sys.stdin
        return
    try:
        stream = Path(source).open(encoding="utf-8-sig", newline="")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise WrongUsage(f"FILE: {source} can't be read: {error.strerror}") from error
    with stream:
        yield stream
