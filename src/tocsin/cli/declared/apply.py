"""`tocsin apply` and `tocsin pull`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import EXIT_CHANGES, Refused, WrongUsage
from tocsin.cli.options import AsJson, ServerOptions
from tocsin.cli.transfer import opened_for_reading, opened_for_writing
from tocsin.model.errors import InvalidInput
from tocsin.model.visible import visible

if TYPE_CHECKING:
    import msgspec

    from tocsin.cli.declared.kind import Change
    from tocsin.cli.declared.plan import Outcome, Plan

#: How each change is marked and coloured.
_MARKS = {"create": ("+", typer.colors.GREEN), "change": ("~", typer.colors.YELLOW), "delete": ("-", typer.colors.RED)}
#: Characters of a value that are shown.
_VALUE_CHARS_MAX = 200


def apply(
    *,
    source: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="YAML or JSON; - for standard input.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Also delete what carries the file's managedBy and is not in the file.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also change what another file manages, and manage it by this one.")
    ] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 4 if something had to change.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the file, and exit.")] = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Make a server have the namespaces, flows, calendars, credentials, schedules and monitors that a file declares.

    Shows what differs, then changes that alone. What the server has besides stays, unless --prune is given.
    """
    from tocsin.cli.declared import document, plan

    if schema:
        sys.stdout.buffer.write(document.schema())
        return
    if source is None:
        raise WrongUsage("give a file with -f, such as -f tocsin.yaml, or -f - for standard input")
    with opened_for_reading(source) as stream:
        declared = document.read(stream.read(), source)
    for option, given in (("--prune", prune), ("--take-over", take_over)):
        if given and declared.managed_by is None:
            raise WrongUsage(f"{option} requires the file to have a name: add managedBy, such as managedBy: shop")
    outcome = None
    with server.client() as client:
        made = plan.plan(client, declared, prune=prune, take_over=take_over)
        if made.errors:
            raise document.invalid(source, InvalidInput(*made.errors))
        if made.refused:
            reasons = document.in_lines(made.refused)
            raise Refused("\n".join([f"{source} can't be applied, and nothing was changed:", *reasons]))
        if not as_json:
            _show(made)
        if made.changes and not dry_run:
            with output.progress("applying", total=len(made.changes)) as advance:
                outcome = plan.carry_out(client, made, declared.managed_by, advance)
    if as_json:
        output.print_json(_as_json(made, outcome))
    if outcome is not None:
        _conclude(outcome, len(made.changes))
    if detailed_exitcode and made.changes:
        raise typer.Exit(EXIT_CHANGES)


def _show(made: Plan) -> None:
    """Prints the plan: coloured on a terminal."""
    console = output.console()
    coloured = console.is_terminal and not console.no_color
    lines: list[str] = []
    for change in made.changes:
        mark, colour = _MARKS[change.action]
        title = f"{mark} {visible(change.title)}"
        lines.append(typer.style(title, fg=colour, bold=True) if coloured else title)
        lines += [f"    {name}: {_value(*both)}" for name, both in change.fields.items()]
    counts = (made.count("create"), made.count("change"), made.count("delete"))
    summary = "{:,} to create, {:,} to change, {:,} to delete".format(*counts)
    lines.append(
        f"{summary}; {made.unchanged:,} unchanged." if made.changes else f"No changes; {made.unchanged:,} checked."
    )
    typer.echo("\n".join(lines))


def _value(before: msgspec.Raw | None, after: msgspec.Raw | None) -> str:
    if before is not None and before == after:
        return f"{_clipped(before)} (a secret in it differs)"
    parts = [_clipped(each) for each in (before, after) if each is not None]
    if before is not None and after is None:
        parts.append("(none)")
    return " → ".join(parts)


def _clipped(value: msgspec.Raw) -> str:
    text = visible(bytes(value).decode())
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[:_VALUE_CHARS_MAX]}…"


def _as_json(made: Plan, outcome: Outcome | None) -> dict[str, Any]:
    """The plan, and what has become of it."""
    refused = {} if outcome is None else {id(change): reason for change, reason in outcome.refused}
    done = set() if outcome is None else {id(change) for change in outcome.done}
    return {
        "changes": [_change_as_json(change, id(change) in done, refused.get(id(change))) for change in made.changes],
        "unchanged": made.unchanged,
    }


def _change_as_json(change: Change, done: bool, refused: str | None) -> dict[str, Any]:
    names = dict(zip(change.kind.key_fields, change.key, strict=True))
    shown: dict[str, Any] = {"action": change.action, "kind": change.kind.title, **names, "done": done}
    if change.fields:
        shown["fields"] = {name: {"before": both[0], "after": both[1]} for name, both in change.fields.items()}
    if refused is not None:
        shown["refused"] = refused
    return shown


def _conclude(outcome: Outcome, changes: int) -> None:
    from tocsin.cli.declared.document import ERRORS_SHOWN_MAX

    output.note(f"Made {len(outcome.done):,} of {changes:,} changes.")
    lines = [f"{change.title}: {reason}" for change, reason in outcome.refused]
    if len(lines) > ERRORS_SHOWN_MAX:
        lines = [*lines[:ERRORS_SHOWN_MAX], f"… and {len(lines) - ERRORS_SHOWN_MAX:,} more"]
    again = "Run apply again to make what is left."
    if outcome.stopped_by is not None:
        raise type(outcome.stopped_by)("\n".join([*lines, str(outcome.stopped_by), again]))
    if lines:
        refused = "1 change was" if len(outcome.refused) == 1 else f"{len(outcome.refused):,} changes were"
        raise Refused("\n".join([f"{refused} refused. {again}", *lines]))


def pull(
    *,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file; JSON if its name ends in .json, else YAML.",
            show_default="standard output",
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only what is in this namespace; may be repeated."),
    ] = None,
    managed_by: Annotated[str | None, typer.Option(metavar="NAME", help="Only what carries this managedBy.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="yaml or json.", show_default="by the file's name, else yaml")
    ] = None,
    server: ServerOptions,
) -> None:
    """Write a file that declares the namespaces, flows, calendars, credentials, schedules and monitors of a server.

    Secrets are [redacted] in it, which stands for the stored ones where it is applied to the same server. Signing secrets are
    left out.
    """
    from tocsin.cli.declared import document
    from tocsin.cli.declared.kinds import KINDS

    form = form or ("json" if target is not None and target.suffix == ".json" else "yaml")
    if form not in ("yaml", "json"):
        raise WrongUsage(f"--format: {form!r} is not one of yaml, json")
    pulled: dict[str, Any] = {} if managed_by is None else {"managedBy": managed_by}
    count = 0
    with server.client() as client:
        known = {each.key[0]: each for each in KINDS[0].stored(client, ())}
        if missing := [name for name in namespaces or () if name not in known]:
            raise WrongUsage(f"--namespace: there is no namespace {missing[0]!r}")
        scope = [name for name in namespaces or known if known[name].held is None]
        for kind in KINDS:
            found = [known[name] for name in scope] if kind is KINDS[0] else kind.stored(client, scope)
            entries = [kind.pulled(each) for each in found if managed_by in (None, each.managed_by)]
            count += len(entries)
            if entries:
                pulled[kind.plural] = entries
    text = document.write(pulled, as_json=form == "json")
    with opened_for_writing(target) as stream:
        stream.write(text)
    output.note(f"Pulled {count:,} objects.")
