"""`tocsin config`: the settings in force, their sources, and whether they are valid."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.options import AsJson, ConfigFile

app = group("Show and check the settings.", example="config show --changed")

#: The source of a setting that nothing sets.
_DEFAULT = "default"


@command(app, "show", example="config show --changed")
def show(
    config: ConfigFile = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that are not at their default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting's value and its source, by group. Passwords in URLs are redacted."""
    from tocsin.settings import load_settings
    from tocsin.settings.declared import SETTINGS
    from tocsin.settings.shown import in_force, value_text

    settings = load_settings({"config": config})
    rows = [each for each in in_force(settings) if each.source or not changed]
    if as_json:
        written = {each.name: value_text(each, settings) for each in SETTINGS.values()}
        output.print_json({row.name: {"value": written[row.name], "source": row.source or _DEFAULT} for row in rows})
        return
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows:
        groups.setdefault(row.topic.title, []).append((row.name, row.value, row.source or _DEFAULT))
    output.print_groups(("setting", "value", "source"), groups)


@command(app, "check", example="config check --config tocsin.toml")
def check(config: ConfigFile = None) -> None:
    """Check the file and the environment without starting a server. Exit code 2, with the reasons, if a setting is wrong. A
    driver that the settings require and that is not installed here is a warning."""
    from tocsin.model.errors import ConfigError
    from tocsin.server.extras import require_extras
    from tocsin.settings import load_settings, unknown_variables

    settings = load_settings({"config": config})
    for line in unknown_variables():
        output.note(f"Warning: {line}")
    try:
        require_extras(settings)
    except ConfigError as missing:
        output.note(f"Warning: {missing}")
    typer.echo("The settings are valid.")
