"""`tocsin failures`: what failed and nobody has dealt with, of a namespace or of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import WrongUsage, command, group
from tocsin.cli.options import AsJson, ScopeOptions, ServerOptions, checked_instant, given

app = group(
    "Failures: timers, occurrences and service calls that failed, grouped by cause, until they are dismissed.",
    example="failures list",
)

#: The handles that one request dismisses.
_IDS_MAX = 1_000


@dataclass(frozen=True)
class GroupOptions:
    """The group of failures that is meant."""

    destination: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL that was called, without its query.")
    ] = None
    error: Annotated[str | None, typer.Option(metavar="CODE", help="The error, such as 'HTTP 500'.")] = None
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="What failed: timer, occurrence or notification.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request."""
        return given(destination=self.destination, error=self.error, kind=self.kind)


Since = Annotated[str | None, typer.Option(metavar="INSTANT", help="Only failures since then.")]


@command(app, "list", example="failures list --namespace '*'")
def list_(
    *,
    scope: ScopeOptions,
    since: Since = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Group by namespace or tenant, destination, error or kind; may be repeated.",
            show_default="all of them",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of groups.")] = 50,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List groups of failures, those with most failures first."""
    wanted = given(since=checked_instant("--since", since), groupBy=by)
    answer = server.post("/failures/list", {**scope.fields(), "limit": limit, **wanted})
    if as_json:
        output.print_json(answer)
        return
    place = next(iter(scope.fields()))
    output.print_table(
        ("count", "error", "destination", "kind", place, "first", "last", "answer"),
        [_row(each, place) for each in answer["groups"]],
    )
    if answer["furtherGroups"]:
        output.note(f"{answer['furtherGroups']} more groups; raise --limit")
    if answer["atLeast"]:
        output.note(f"Older failures than the newest {answer['count']} were not counted")


def _row(group_: dict[str, Any], place: str) -> tuple[object, ...]:
    attempt = group_.get("sample", {}).get("attempt", {})
    names = ("error", "destination", "kind", place, "firstAt", "lastAt")
    return (group_["count"], *(group_.get(name) for name in names), attempt.get("answer"))


@command(app, "members", example="failures members --namespace billing --error 'HTTP 500'")
def members(
    *,
    scope: ScopeOptions,
    group_: GroupOptions,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of failures.")] = 100,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the failures of a group, or all, newest first."""
    wanted = {**scope.fields(), **group_.fields(), **given(since=checked_instant("--since", since))}
    found: list[dict[str, Any]] = []
    cursor = None
    while len(found) < limit:
        page = {"limit": min(limit - len(found), 1_000), **given(cursor=cursor)}
        answer = server.post("/failures/members", wanted | page)
        found += answer["failures"]
        cursor = answer.get("nextCursor")
        if cursor is None:
            break
    if as_json:
        output.print_json({"failures": found, **given(nextCursor=cursor)})
        return
    columns = ("failedAt", "kind", next(iter(scope.fields())), "id", "executeAt", "error", "destination", "failureId")
    output.print_table(columns, [[each[name] for name in columns] for each in found])
    if cursor is not None:
        output.note("More follow; raise --limit")


@command(app, "dismiss", example="failures dismiss --namespace billing --error 'HTTP 500'")
def dismiss(
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The failureId of each.")] = None,
    scope: ScopeOptions,
    group_: GroupOptions,
    every: Annotated[bool, typer.Option("--all", help="All failures of the namespace or tenant.")] = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Remove failures from the list: by their ids, those of a group, or all. Their history stays."""
    if bool(ids) + bool(group_.fields()) + every != 1:
        raise WrongUsage("give ids, or options of a group (--destination, --error, --kind), or --all")
    dismissed = 0
    parts: list[dict[str, Any]] = [{"ids": (ids or [])[i : i + _IDS_MAX]} for i in range(0, len(ids or ()), _IDS_MAX)]
    for part in parts or [{"all": True} if every else group_.fields()]:
        more = True
        while more:
            answer = server.post("/failures/dismiss", {**scope.fields(), **part})
            dismissed += answer["dismissed"]
            more = answer["more"] and answer["dismissed"] > 0
    if as_json:
        output.print_json({"dismissed": dismissed})
    else:
        output.note(f"Dismissed {dismissed} failure{'' if dismissed == 1 else 's'}")
