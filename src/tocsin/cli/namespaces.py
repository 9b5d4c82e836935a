"""`tocsin namespaces`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.failure import WrongUsage
from tocsin.cli.options import (
    LOCAL_SERVER,
    NO_RETRIES,
    AsJson,
    RetryDefault,
    RetryOptions,
    Server,
    checked_duration,
    given,
)
from tocsin.cli.rotation import Force, Grace, NewSecret, rotation, show_rotation

app = group(
    "Namespaces: the scope in which timer ids are unique, and its settings.",
    example="namespaces create billing --retention 7d",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="1 to 255 of A-Z a-z 0-9 . _ : -")]
History = Annotated[str | None, typer.Option(metavar="WHICH", help="Finished timers to keep: all, failures or none.")]
Retention = Annotated[str | None, typer.Option(metavar="DURATION", help="How long finished timers are kept.")]
Secret = Annotated[
    str | None,
    typer.Option(
        metavar="WHSEC",
        help="Secret that signs callbacks: whsec_ and the base64 of 24 to 64 bytes; `new` generates one.",
    ),
]

AnswersMode = Annotated[
    str | None,
    typer.Option(
        "--answers",
        metavar="HOW",
        help="What counts as success: standard (any 2xx, unless its JSON body reports a failure) or strict (2xx with an "
        "empty body or ok: true).",
    ),
]


@command(app, "create", example="namespaces create billing --retention 7d --secret new")
def create(
    name: Name,
    shards: Annotated[
        int | None, typer.Option("--shards", help="Number of shards it uses; can't be changed later.")
    ] = None,
    history: History = None,
    retention: Retention = None,
    secret: Secret = None,
    answers: AnswersMode = None,
    retries: RetryOptions = NO_RETRIES,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Create a namespace."""
    body = _body(name, history, retention, secret, answers) | given(numShards=shards) | retries.policy()
    _show(server.post("/namespaces/create", body), body, as_json, shown_secret=secret == "new")


@command(app, "update", example="namespaces update billing --pause")
def update(
    name: Name,
    history: History = None,
    retention: Retention = None,
    secret: Secret = None,
    remove_secret: Annotated[
        bool, typer.Option("--remove-secret", help="Remove the secret: callbacks are no longer signed.")
    ] = False,
    paused: Annotated[
        bool | None,
        typer.Option("--pause/--resume", help="Stop firing its timers; resume firing.", show_default=False),
    ] = None,
    answers: AnswersMode = None,
    retries: RetryOptions = NO_RETRIES,
    retry_default: RetryDefault = False,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Change a namespace's settings; options not given keep their value."""
    if remove_secret and secret is not None:
        raise WrongUsage("--secret and --remove-secret conflict; give only one of them")
    body = _body(name, history, retention, secret, answers)
    body |= retries.policy(remove=retry_default)
    if remove_secret:
        body["secret"] = None
    if paused is not None:
        body["paused"] = paused
    if len(body) == 1:
        raise WrongUsage("no change given; give --history, --retention, --secret, --pause, …")
    _show(server.post("/namespaces/update", body), body, as_json, shown_secret=secret == "new")


@command(app, "rotate-secret", example="namespaces rotate-secret billing --grace 48h")
def rotate_secret(
    name: Name,
    secret: NewSecret = None,
    grace: Grace = None,
    force: Force = False,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Sign with a new secret; the previous one keeps signing during the grace period."""
    show_rotation(server.post("/namespaces/rotateSecret", rotation("name", name, secret, grace, force)), as_json)


@command(app, "list", example="namespaces list")
def list_namespaces(server: Server = LOCAL_SERVER, as_json: AsJson = False) -> None:
    """List the namespaces."""
    answer = server.post("/namespaces/list", {})
    if as_json:
        output.print_json(answer)
        return
    found = answer["namespaces"]
    columns = [
        name
        for name in dict.fromkeys(name for entry in found for name in entry)
        if name not in ("createdAt", "updatedAt", "retryPolicy")
    ]
    output.print_table(columns, [[output.cell(entry.get(name)) for name in columns] for entry in found])


def _body(
    name: str, history: str | None, retention: str | None, secret: str | None, answers: str | None
) -> dict[str, Any]:
    if secret == "new":
        from tocsin.model.secrets import new_secret

        secret = new_secret()
    retention = checked_duration("--retention", retention)
    return given(name=name, history=history, retention=retention, secret=secret, answers=answers)


def _show(answer: dict[str, Any], sent: dict[str, Any], as_json: bool, *, shown_secret: bool) -> None:
    if as_json:
        output.print_json(answer | ({"secret": sent["secret"]} if shown_secret else {}))
        return
    output.print_fields({name: output.cell(value) for name, value in answer.items()})
    if shown_secret:
        output.note("The new secret, for the receivers (it is shown only now):")
        typer.echo(sent["secret"])
