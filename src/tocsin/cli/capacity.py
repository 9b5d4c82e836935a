"""`tocsin capacity`."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli import output
from tocsin.cli.failure import WrongUsage
from tocsin.cli.options import AsJson

if TYPE_CHECKING:
    from tocsin.cli.capacity_model import Plan

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)\Z")
_AMOUNT_CHARS_MAX = 15
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_PERIODS_S = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


class Database(StrEnum):
    """The stores whose costs have been measured like this."""

    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"


def capacity(
    creates: Annotated[
        str, typer.Option("--creates", metavar="RATE", help="Timers created: 500/s, 30k/min, 2M/h, 10M/d.")
    ],
    fires: Annotated[
        str | None, typer.Option("--fires", metavar="RATE", help="Timers fired.", show_default="as many as are created")
    ] = None,
    pending: Annotated[
        str, typer.Option("--pending", metavar="NUMBER", help="Timers that wait at once: 200k, 10M.")
    ] = "1M",
    payload: Annotated[str, typer.Option("--payload", metavar="BYTES", help="Bytes of a payload: 200, 1KiB.")] = "200",
    retention: Annotated[
        str,
        typer.Option("--retention", metavar="DURATION", help="How long finished timers are kept; 0s without history."),
    ] = "3d",
    batches: Annotated[bool, typer.Option("--batches", help="Timers are created in batches of hundreds.")] = False,
    store: Annotated[Database, typer.Option("--store", help="postgresql or sqlite.")] = Database.POSTGRESQL,
    as_json: AsJson = False,
) -> None:
    """Estimate what a load takes: nodes, database, disk, memory, shards. Each result states whether it was measured at such a
    load, extrapolated from lower ones, or rests on an assumption. Rates are averages over a busy minute."""
    from tocsin.cli.capacity_model import Load, plan

    made = rate("--creates", creates)
    found = plan(
        Load(
            creates_per_s=made,
            fires_per_s=made if fires is None else rate("--fires", fires),
            pending=int(amount("--pending", pending)),
            payload_bytes=size("--payload", payload),
            batches=batches,
            retention_s=duration_s("--retention", retention),
            sqlite=store is Database.SQLITE,
        )
    )
    if as_json:
        results = [{"name": line.name, "value": round(line.value, 3), "basis": line.basis} for line in found.results]
        output.print_json({"cells": found.cells, "results": results, "notes": found.notes})
    else:
        _print(found)


def _print(found: Plan) -> None:
    title = "one cluster" if found.cells == 1 else f"each of {found.cells} clusters"
    rows = [(line.name, _number(line.value), line.basis.value) for line in found.results]
    output.print_table((title, "estimate", "basis"), rows)
    for note in found.notes:
        output.note(note)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def amount(option: str, text: str) -> float:
    """A number with an optional k, M or G. Raises WrongUsage."""
    match = _AMOUNT.match(text.strip())
    if match is None or len(text) > _AMOUNT_CHARS_MAX:
        raise WrongUsage(f"{option}: {text!r} is not a number that can be planned for; write it as 500, 200k or 10M")
    return float(match[1]) * _FACTORS[match[2]]


def rate(option: str, text: str) -> float:
    """Timers a second. Raises WrongUsage."""
    number, slash, period = text.strip().partition("/")
    if not slash or period not in _PERIODS_S or _AMOUNT.match(number) is None:
        raise WrongUsage(f"{option}: {text!r} is not a rate; write it as 500/s, 30k/min, 2M/h or 10M/d")
    return amount(option, number) / _PERIODS_S[period]


def size(option: str, text: str) -> int:
    """Bytes. Raises WrongUsage."""
    from tocsin.settings.values import byte_count

    try:
        return byte_count(text, least=0)
    except ValueError as error:
        raise WrongUsage(f"{option}: {text!r} {error}") from None


def duration_s(option: str, text: str) -> float:
    """Seconds. Raises WrongUsage."""
    from tocsin.model.instants import parse_duration

    try:
        return parse_duration(text) / 1e6
    except ValueError as error:
        raise WrongUsage(f"{option}: {text!r} {error}") from None
