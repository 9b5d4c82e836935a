"""`tocsin calendars`: named dates that schedules fire on, or skip."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import Refused, WrongUsage, command, group
from tocsin.cli.options import AsJson, ServerOptions, given

app = group(
    "Calendars: named dates that schedules fire on (--only), or skip (--skip).",
    example="calendars put weekends --weekday SAT --weekday SUN",
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="The calendars' namespace.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The calendar's name.")]
TimeZone = Annotated[
    str,
    typer.Option("--time-zone", metavar="ZONE", help="IANA time zone in which the dates begin and end."),
]
Description = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What it is for, in one line.")]
ExpectedVersion = Annotated[
    int | None,
    typer.Option(
        "--expected-version", metavar="N", help="Only if it has this version; 0: only if there is none.", min=0
    ),
]


@command(app, "put", example="calendars put holidays-de --date 2027-01-01 --range 2027-12-24/2027-12-26")
def put(
    *,
    name: Name,
    dates: Annotated[
        list[str] | None, typer.Option("--date", metavar="DATE", help="A date, such as 2027-12-25. May be repeated.")
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="FIRST/LAST", help="Dates from the first to the last. May be repeated."),
    ] = None,
    weekdays: Annotated[
        list[str] | None,
        typer.Option("--weekday", metavar="DAY", help="A day of every week: MON to SUN. May be repeated."),
    ] = None,
    time_zone: TimeZone = "UTC",
    description: Description = None,
    expected_version: ExpectedVersion = None,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a calendar, or replace all that it has. Schedules that name it are planned again."""
    request = given(
        namespace=namespace,
        name=name,
        timeZone=time_zone,
        dates=dates or None,
        ranges=[_range(each) for each in ranges or []] or None,
        weekdays=[each.upper() for each in weekdays or []] or None,
        description=description,
        expectedVersion=expected_version,
    )
    _show(server.post("/calendars/put", request), as_json)


@command(app, "import", example="calendars import holidays.ics --name holidays-de --time-zone Europe/Berlin")
def import_calendar(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An iCalendar file (.ics) of at most 1 MiB.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The calendar's name.", show_default="the file's")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="Dates before this one are left out.", show_default="1 January"),
    ] = None,
    time_zone: TimeZone = "UTC",
    description: Description = None,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a calendar of the dates of an iCalendar file's events, or replace its dates. Only the dates are kept; events
    that recur are expanded for 10 years, so import it again by then."""
    from tocsin.cli.ical import FILE_BYTES_MAX, BadCalendar, read_dates
    from tocsin.model.recurrence import time_zone as zone_of
    from tocsin.server.extras import require_extra

    require_extra("ical", str(file))
    try:
        zone_of(time_zone)
    except ValueError as error:
        raise WrongUsage(f"--time-zone {error}") from None
    try:
        begin = date(datetime.now(UTC).year, 1, 1) if since is None else date.fromisoformat(since)
        # The years of 29 February have other dates.
        begin = begin.replace(day=28) if (begin.month, begin.day) == (2, 29) else begin
    except ValueError:
        raise WrongUsage(f"--from: {since!r} is no date; write it as 2027-01-01") from None
    with file.open("rb") as opened:
        content = opened.read(FILE_BYTES_MAX + 1)
    try:
        found = read_dates(content, time_zone, begin)
    except BadCalendar as error:
        raise Refused(f"{file} {error}") from None
    request = given(
        namespace=namespace, name=name or file.stem, timeZone=time_zone, dates=found, description=description
    )
    put_calendar = server.post("/calendars/put", request)
    if not as_json:
        output.note(f"{len(found)} dates from {found[0]} to {found[-1]}.")
    _show(put_calendar, as_json)


@command(app, "get", example="calendars get holidays-de")
def get(*, name: Name, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False) -> None:
    """Show a calendar and its dates."""
    _show(server.post("/calendars/get", {"namespace": namespace, "name": name}), as_json)


@command(app, "list", example="calendars list --namespace billing")
def list_calendars(
    *,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of calendars.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="nextCursor of the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the calendars of a namespace by name."""
    answer = server.post("/calendars/list", given(namespace=namespace, limit=limit, cursor=cursor))
    columns = ("name", "timeZone", "dateCount", "rangeCount", "weekdays", "firstDate", "lastDate", "managedBy")
    output.print_objects(answer, as_json, "calendars", columns, answer["calendars"])


@command(app, "delete", example="calendars delete holidays-de")
def delete(*, name: Name, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Delete a calendar. Refused while schedules name it."""
    server.post("/calendars/delete", {"namespace": namespace, "name": name})
    output.note(f"{name} is deleted.")


def _range(text: str) -> dict[str, str]:
    first, slash, last = text.partition("/")
    if not slash:
        raise WrongUsage(f"--range: {text!r} has no slash; write both dates, such as 2027-12-24/2027-12-26")
    return {"first": first, "last": last}


def _show(calendar: dict[str, Any], as_json: bool) -> None:
    ranges = [f"{each['first']} to {each['last']}" for each in calendar["ranges"]]
    output.print_object(calendar, as_json, dates=", ".join(calendar["dates"]), ranges=", ".join(ranges))
