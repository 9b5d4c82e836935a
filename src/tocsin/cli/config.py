"""`tocsin config`: the settings in force, their sources, and whether they are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from tocsin.settings import Settings
    from tocsin.settings.declared import Setting

app = group("Show and check the settings.", example="config show --changed")


@command(app, "show", example="config show --changed")
def show(
    config: ConfigFile = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that are not at their default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every setting's value and its source, by group. Passwords in URLs are redacted."""
    from tocsin.settings import load_settings, sources
    from tocsin.settings.declared import by_topic

    flags = {"config": config}
    settings, found = load_settings(flags), sources(flags)
    groups = {
        topic.title: [
            (setting, source.place or source.origin.value)
            for setting in declared
            if (source := found[setting.field]).place or not changed
        ]
        for topic, declared in by_topic().items()
    }
    if as_json:
        output.print_json(
            {
                setting.name: {"value": value_text(setting, settings), "source": source}
                for rows in groups.values()
                for setting, source in rows
            }
        )
        return
    output.print_groups(
        ("setting", "value", "source"),
        {
            title: [(setting.name, _shown(setting, settings), source) for setting, source in rows]
            for title, rows in groups.items()
        },
    )


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


def _shown(setting: Setting, settings: Settings) -> str:
    """The value for people: with its unit, and a word where there is none."""
    value = setting.value(settings)
    if value is None:
        return "unset"
    if value == ():
        return "none"
    return str(setting.written(value)) if setting.counts_bytes else value_text(setting, settings)


def value_text(setting: Setting, settings: Settings) -> str:
    """The value as it is written in the environment; empty if it is unset. Sizes are numbers of bytes."""
    from tocsin.model.setting_values import redacted
    from tocsin.settings.settings import SECRETS

    value = setting.value(settings)
    if value is None:
        return ""
    if setting.field in SECRETS:
        return "…"
    written = value if setting.counts_bytes else setting.written(value)
    if isinstance(written, bool):
        return "true" if written else "false"
    if isinstance(written, list):
        return ",".join(written)
    return redacted(str(written))
