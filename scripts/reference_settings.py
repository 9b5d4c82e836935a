"""The page of all settings, and the example file, made from the declarations of settings."""

from __future__ import annotations

from typing import Any

from tocsin.settings.declared import Setting, by_topic, env_name

INTRO = """# Settings

A setting comes from a flag of `tocsin serve` (a few settings have one), from the environment, or from a TOML file. The
first of them that has it wins; otherwise the default applies. `--config` or `TOCSIN_CONFIG` names the file:

```toml
port = 9000
log_format = "json"

[egress]
allow = ["10.1.0.0/16", "hooks.internal:8080"]

[sqlite]
synchronous = "NORMAL"
```

[tocsin.toml](tocsin.toml) is an example file with every setting at its default. `tocsin config show` prints the values in
force and where each comes from; `tocsin config check` only validates them.

Durations are texts such as `500ms`, `30s`, `5m`, `24h`, `7d`. Sizes are numbers of bytes or texts such as `64MiB`. Lists
are written `one,two` in the environment. An unknown key of the file is an error, and an unknown variable a warning. A
setting that was renamed, or became a constant, is an error that names the new setting or the value.

Five variables without the prefix are aliases, used if the setting's own variable is unset: `TIMER_POLLING_INTERVAL` (in
milliseconds), `TIMER_BATCH_SIZE`, `TIMER_DB_PATH` or `DB_PATH`, and `TIMER_BROKER_URL`.
"""

EXAMPLE_INTRO = """# Settings of Tocsin, each at its default. Remove the # before those to change, and start the server with
# tocsin serve --config tocsin.toml. The page settings.md beside this file describes each. Tables from pages, such as [ui],
# belong at the end, since all that follows one belongs to it; then no line above may begin with its name, such as ui.origins.
"""


def settings_page(generated: str) -> str:
    """The page of all settings, by group."""
    head = "| setting | variable | default | meaning |\n| --- | --- | --- | --- |\n"
    parts = [generated, INTRO]
    for topic, declared in by_topic().items():
        rows = "".join(
            f"| `{setting.name}` | `{env_name(setting.field)}` | {_default(setting)} | {setting.declaration.description} |\n"
            for setting in declared
        )
        parts.append(f"## {topic.title}\n\n{topic.intro}\n\n{head}{rows}")
    return "\n".join(parts)


def example_file() -> str:
    """A settings file with every setting at its default, commented out."""
    parts = [EXAMPLE_INTRO]
    for topic, declared in by_topic().items():
        lines = "".join(f"#{setting.name} = {_toml(setting)}\n" for setting in declared)
        parts.append(f"# {topic.title}\n\n{lines}")
    return "\n".join(parts)


def _default(setting: Setting) -> str:
    value = setting.written(setting.default)
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    return "none" if value == [] else f"`{value}`"


def _toml(setting: Setting) -> str:
    value: Any = setting.written(setting.default)
    if value is None:
        return "  # unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
