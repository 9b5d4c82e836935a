"""`tocsin config`: the settings in force, their sources, and whether they are valid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from tocsin.settings import Settings

app = group("Show and check the settings.", example="config show --changed")


@command(app, "show", example="config show --changed")
def show(
    config: ConfigFile = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that are not at their default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting's value and its source, by group. Passwords in URLs are redacted."""
    from tocsin.settings import load_settings, setting_name, sources
    from tocsin.settings.settings import GROUPS

    flags = {"config": config}
    settings, found = load_settings(flags), sources(flags)
    groups = {
        group.title: [
            (field, found[field].place or found[field].origin.value)
            for field in group.model_fields
            if found[field].place or not changed
        ]
        for group in GROUPS
    }
    if as_json:
        output.print_json(
            {
                setting_name(field): {"value": value_text(settings, field), "source": source}
                for rows in groups.values()
                for field, source in rows
            }
        )
        return
    output.print_groups(
        ("setting", "value", "source"),
        {
            title: [(setting_name(field), _shown(settings, field), source) for field, source in rows]
            for title, rows in groups.items()
        },
    )


@command(app, "check", example="config check --config tocsin.toml")
def check(
    config: ConfigFile = None,
) -> None:
    """Check the file and the environment without starting a server. Exit code 2, with the reasons, if a setting is wrong."""
    from tocsin.settings import load_settings, unknown_variables

    load_settings({"config": config})
    for line in unknown_variables():
        output.note(f"Warning: {line}")
    typer.echo("The settings are valid.")


def _shown(settings: Settings, field: str) -> str:
    """The value for people: with its unit, and a word where there is none."""
    from tocsin.settings.settings import holds_bytes
    from tocsin.settings.values import bytes_text

    value = getattr(settings, field)
    if value is None:
        return "unset"
    if value == []:
        return "none"
    return bytes_text(value) if holds_bytes(field) else value_text(settings, field)


def value_text(settings: Settings, field: str) -> str:
    """The value as it is written in the environment; empty if it is unset."""
    from tocsin.model.instants import format_duration
    from tocsin.settings.settings import SECRETS, holds_duration
    from tocsin.settings.values import redacted

    value = getattr(settings, field)
    if value is None:
        return ""
    if field in SECRETS:
        return "…"
    if holds_duration(field):
        return format_duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return redacted(value) if isinstance(value, str) else str(Path(value)) if isinstance(value, Path) else str(value)
