"""Options and output of the commands that rotate a signing secret."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.options import checked_duration

NewSecret = Annotated[
    str | None,
    typer.Option(
        "--secret",
        metavar="WHSEC",
        help="The new secret: whsec_ and the base64 of 24 to 64 bytes.",
        show_default="one that the server makes",
    ),
]
Grace = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="How long the former secret signs, too; 0s: not at all.", show_default="24h"),
]
Force = Annotated[bool, typer.Option("--force", help="Also within the grace of another rotation.")]


def rotation(field: str, name: str, secret: str | None, grace: str | None, force: bool) -> dict[str, Any]:
    """The request that rotates the secret of whoever is named in `field`."""
    given = {"secret": secret, "grace": checked_duration("--grace", grace), "force": force or None}
    return {field: name} | {option: value for option, value in given.items() if value is not None}


def show_rotation(answer: dict[str, Any], as_json: bool) -> None:
    """Prints the new secret, and until when its predecessor signs."""
    if as_json:
        output.print_json(answer)
        return
    until = f" The former one signs, too, until {answer['previousUntil']}." if "previousUntil" in answer else ""
    output.note(f"The new secret, for the receivers; it can't be shown again.{until}")
    typer.echo(answer["secret"])
