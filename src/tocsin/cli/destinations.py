"""`tocsin destinations`: the hosts to which timers are sent, in the whole cluster."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.options import AsJson, ServerOptions

app = group(
    "Destinations: the hosts to which timers are sent, what waits for them, and their breakers.",
    example="destinations list",
)
Name = Annotated[str, typer.Argument(metavar="URL", help="Scheme and host, such as https://shop.example.")]


@command(app, "list", example="destinations list --limit 20")
def list_(
    *,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of destinations.")] = 100,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List destinations, those that need attention first."""
    answer = server.post("/destinations/list", {"limit": limit})
    if as_json:
        output.print_json(answer)
        return
    output.print_table(
        ("destination", "state", "in flight", "limit", "waiting", "failed of 30 s", "last error", "next probe"),
        [_row(each) for each in answer["destinations"]],
    )
    if answer["further"]:
        output.note(f"At least {answer['further']} more; raise --limit")
    if not all(each["complete"] for each in answer["destinations"]):
        output.note("Not all nodes have answered")


@command(app, "pause", example="destinations pause https://shop.example")
def pause(*, name: Name, server: ServerOptions, as_json: AsJson = False) -> None:
    """Send nothing to a destination until it is resumed. Its timers wait."""
    _change("pause", name, server, as_json=as_json)


@command(app, "resume", example="destinations resume https://shop.example")
def resume(*, name: Name, server: ServerOptions, as_json: AsJson = False) -> None:
    """End the pause of a destination."""
    _change("resume", name, server, as_json=as_json)


@command(app, "probe", example="destinations probe https://shop.example")
def probe(*, name: Name, server: ServerOptions, as_json: AsJson = False) -> None:
    """Try one waiting timer now where the breaker is open; a success closes it."""
    _change("probe", name, server, as_json=as_json)


def _change(action: str, name: str, server: ServerOptions, *, as_json: bool) -> None:
    answer = server.post(f"/destinations/{action}", {"destination": name})
    if as_json:
        output.print_json(answer)
    else:
        typer.echo(f"{answer['destination']}: {_state(answer)}, {answer['waiting']} waiting")


def _state(destination: dict[str, Any]) -> str:
    return "paused" if destination["paused"] else f"breaker {destination['breaker'].replace('_', '-')}"


def _row(each: dict[str, Any]) -> tuple[object, ...]:
    counted = f"{each['failures']}/{each['attempts']}"
    optional = (each.get(name) for name in ("lastError", "nextProbeAt"))
    return (each["destination"], _state(each), each["inFlight"], each["limit"], each["waiting"], counted, *optional)
