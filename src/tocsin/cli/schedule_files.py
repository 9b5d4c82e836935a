"""`tocsin schedules export` and `import`: schedules as JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tocsin.cli import output
from tocsin.cli.exporting import opened_for_writing
from tocsin.cli.failure import Refused, Unreachable, WrongUsage
from tocsin.cli.importing import opened_for_reading
from tocsin.cli.options import LOCAL_SERVER, AsJson, Namespace, Server, given

if TYPE_CHECKING:
    from tocsin.cli.client import Client

PAGE_ROWS = 1_000
#: Creates in flight at once, and lines of which all results are awaited together.
IN_FLIGHT, CHUNK_ROWS = 16, 256
#: Errors that are printed.
ERRORS_SHOWN_MAX = 20
#: Fields that only the server sets; import sends none of them.
READ_ONLY = frozenset(
    {
        "scheduleUuid", "shardId", "status", "sentence", "nextInstants", "counts", "missed", "triggersWaiting",
        "backfillsWaiting", "createdAt", "updatedAt", "pausedReason", "occurrenceAt", "attempts", "nextAttemptAt",
        "lastError", "lastOccurrence", "suspended",
    }
)  # fmt: skip


def export(
    namespace: Namespace = "default",
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file.", show_default="standard output"),
    ] = None,
    server: Server = LOCAL_SERVER,
) -> None:
    """Write all active and paused schedules as JSON Lines, ordered by id."""
    from tocsin.cli.rows import JsonLinesWriter, SchedulePage

    body = given(namespace=namespace, limit=PAGE_ROWS)
    count = 0
    with server.client() as client:
        # The first page before the file: a refused request must not leave an empty file behind.
        page = client.post_for(SchedulePage, "/schedules/list", body)
        with opened_for_writing(target) as stream:
            writer = JsonLinesWriter(stream)
            while True:
                writer.write(page.schedules)
                count += len(page.schedules)
                if not page.cursor:
                    break
                page = client.post_for(SchedulePage, "/schedules/list", body | {"cursor": page.cursor})
    output.note(f"Exported {count:,} schedules.")


def import_schedules(
    source: Annotated[str, typer.Argument(metavar="FILE", help="JSON Lines; - for standard input.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of rows that don't name one.")
    ] = "default",
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Create the schedules of a file. Existing ones keep their counts and history, so an import can be repeated.

    Paused schedules are created and paused at once. An interval without an anchor counts from the creation that the file
    shows.
    """
    created, unchanged, failures = 0, 0, []
    with opened_for_reading(source) as stream, server.client() as client:
        for line, outcome in _outcomes(_rows(stream), lambda row: _create(client, {"namespace": namespace, **row})):
            if isinstance(outcome, Refused):
                failures.append(f"line {line}: {outcome}")
            else:
                unchanged += outcome
                created += not outcome
    if as_json:
        output.print_json({"created": created, "unchanged": unchanged, "failed": len(failures)})
    else:
        output.note(f"Created or changed {created:,} schedules; {unchanged:,} were unchanged.")
    if failures:
        shown = failures[:ERRORS_SHOWN_MAX]
        more = f" The first {len(shown)}:" if len(failures) > len(shown) else ""
        raise Refused("\n".join([f"{len(failures):,} lines failed.{more}", *shown]))


def _rows(stream: TextIO) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The lines of the file with their numbers; an invalid one is the reason."""
    from tocsin.cli.rows import BadRow, read_json_lines

    try:
        for line, row in read_json_lines(stream):
            yield line, str(row) if isinstance(row, BadRow) else row
    except UnicodeDecodeError as error:
        raise WrongUsage(f"FILE: is not UTF-8 text ({error.reason})") from None


def _outcomes(
    rows: Iterable[tuple[int, dict[str, Any] | str]], create: Callable[[dict[str, Any]], bool]
) -> Iterator[tuple[int, bool | Refused]]:
    """What `create` returned or refused for each line, in their order; several run at once. Raises Unreachable."""
    with ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="tocsin-import") as threads:
        for chunk in _chunks(rows):
            begun = [(line, row if isinstance(row, str) else threads.submit(create, row)) for line, row in chunk]
            for line, made in begun:
                try:
                    yield line, Refused(made) if isinstance(made, str) else made.result()
                except Refused as refusal:
                    yield line, refusal
                except Unreachable as error:
                    raise Unreachable(f"{error}\nLines from {line} on may be missing; import the file again") from error


def _chunks(rows: Iterable[tuple[int, dict[str, Any] | str]]) -> Iterator[list[tuple[int, dict[str, Any] | str]]]:
    """The rows in lists that may be created in any order: none has two rows with the same id."""
    chunk: list[tuple[int, dict[str, Any] | str]] = []
    ids: set[object] = set()
    for line, row in rows:
        name = line if isinstance(row, str) else bytes(row.get("id", b""))
        if len(chunk) >= CHUNK_ROWS or name in ids:
            yield chunk
            chunk, ids = [], set()
        chunk.append((line, row))
        ids.add(name)
    yield chunk


def _create(client: Client, row: dict[str, Any]) -> bool:
    """Creates the schedule of a row; whether it was unchanged."""
    import msgspec

    request = {name: value for name, value in row.items() if name not in READ_ONLY}
    if "every" in row and "anchor" not in row and "createdAt" in row:
        request["anchor"] = row["createdAt"]
    schedule, found = client.create(request, "schedules")
    if "status" in row and msgspec.json.decode(row["status"]) == "paused" and schedule["status"] != "paused":
        client.post("/schedules/pause", {"namespace": schedule["namespace"], "scheduleId": schedule["id"]})
        return False
    return found == "existing"
