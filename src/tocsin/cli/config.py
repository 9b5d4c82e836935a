"""`tocsin config`: shows and checks the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli import output
from tocsin.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from tocsin.config import Settings

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show and check the settings.",
    epilog="Example: tocsin config show --changed",
)


@app.command("show", epilog="Example: tocsin config show --changed")
def show(
    config: ConfigFile = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that differ from the default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting's value and source. Passwords in URLs are redacted."""
    from tocsin.config import load_settings, setting_name, sources
    from tocsin.config.order import topics

    flags = {"config": config}
    settings, found = load_settings(flags), sources(flags)
    rows = [
        (setting_name(field), value_text(settings, field), found[field].place or found[field].origin.value)
        for _, fields in topics()
        for field in fields
        if found[field].place or not changed
    ]
    if as_json:
        output.print_json({name: {"value": value, "source": source} for name, value, source in rows})
    else:
        output.print_table(("setting", "value", "source"), rows)


@app.command("check", epilog="Example: tocsin config check --config tocsin.toml")
def check(
    config: ConfigFile = None,
) -> None:
    """Check the settings in file and environment without starting a server; if one is invalid, exit with code 2 and why."""
    from tocsin.config import load_settings, unknown_variables

    load_settings({"config": config})
    for line in unknown_variables():
        output.note(f"Warning: {line}")
    typer.echo("The settings are valid.")


def value_text(settings: Settings, field: str) -> str:
    """The value as it is written in the environment; empty if it isn't set."""
    from tocsin.config.settings import SECRETS, is_duration
    from tocsin.config.values import redacted
    from tocsin.model.instants import format_duration

    value = getattr(settings, field)
    if value is None:
        return ""
    if field in SECRETS:
        return "…"
    if is_duration(field):
        return format_duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return redacted(value) if isinstance(value, str) else str(Path(value)) if isinstance(value, Path) else str(value)
