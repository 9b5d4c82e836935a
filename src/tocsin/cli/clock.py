"""`tocsin clock`: the clock of a server that `tocsin dev` runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.failure import WrongUsage
from tocsin.cli.options import LOCAL_SERVER, AsJson, Server, checked_duration, checked_instant, given

app = group("Show and move the clock of a server that `tocsin dev` runs.", example="clock advance 3d")


@command(app, "get", example="clock get")
def get(server: Server = LOCAL_SERVER, as_json: AsJson = False) -> None:
    """Show the clock."""
    _show(_post(server, "get", {}), as_json)


@command(app, "advance", example="clock advance 3d")
def advance(
    by: Annotated[str | None, typer.Argument(metavar="[DURATION]", help="How far: 500ms, 30s, 5m, 24h, 7d.")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="INSTANT", help="To this instant instead, such as 2027-01-31T12:00:00Z."),
    ] = None,
    jump: Annotated[
        bool, typer.Option("--jump", help="Go there at once, so that what is due on the way is late.")
    ] = False,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Move the clock forward. It halts at each instant at which something is due, until the answers are durable."""
    if (by is None) == (to is None):
        raise WrongUsage("give exactly one of a duration, such as 3d, and --to, such as --to 2027-01-31T12:00:00Z")
    _show(
        _post(
            server,
            "advance",
            given(
                by=checked_duration("DURATION", by),
                to=checked_instant("--to", to),
                mode="jump" if jump else None,
            ),
        ),
        as_json,
    )


def _post(server: Server, action: str, body: dict[str, Any]) -> dict[str, Any]:
    from tocsin.cli.client import Client, ServerRefused
    from tocsin.cli.failure import Refused

    # Thousands of timers may fire before the response: the server limits how long it waits for each.
    with Client(server.server, server.key, answer_timeout_s=None) as client:
        try:
            clock: dict[str, Any] = client.post(f"/dev/clock/{action}", body)
        except ServerRefused as refusal:
            if refusal.status != 404:
                raise
            raise Refused(f"{client.server} has no clock that can be moved; start one with `tocsin dev`") from refusal
    return clock


def _show(clock: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(clock)
    else:
        output.print_fields(clock | {"offset": _rough(clock["offset"])})


def _rough(offset: str) -> str:
    """The duration in whole seconds."""
    from tocsin.model.instants import US_PER_SECOND, format_duration, parse_duration

    return format_duration(parse_duration(offset) // US_PER_SECOND * US_PER_SECOND)
