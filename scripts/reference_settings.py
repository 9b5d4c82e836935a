"""The page of all settings, and the example file, made from the groups of settings."""

from __future__ import annotations

from typing import Any

from tocsin.model.instants import format_duration
from tocsin.settings import Settings, env_name, setting_name
from tocsin.settings.settings import GROUPS, holds_bytes, holds_duration
from tocsin.settings.values import bytes_text

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
# tocsin serve --config tocsin.toml. The page settings.md beside this file describes each.
"""


def settings_page(generated: str) -> str:
    """The page of all settings, by group."""
    head = "| setting | variable | default | meaning |\n| --- | --- | --- | --- |\n"
    parts = [generated, INTRO]
    for group in GROUPS:
        rows = "".join(
            f"| `{setting_name(name)}` | `{env_name(name)}` | {_default(name)} | {field.description} |\n"
            for name, field in group.model_fields.items()
        )
        parts.append(f"## {group.title}\n\n{group.intro}\n\n{head}{rows}")
    return "\n".join(parts)


def example_file() -> str:
    """A settings file with every setting at its default, commented out."""
    parts = [EXAMPLE_INTRO]
    for group in GROUPS:
        lines = "".join(f"#{setting_name(name)} = {_toml(name)}\n" for name in group.model_fields)
        parts.append(f"# {group.title}\n\n{lines}")
    return "\n".join(parts)


def _value(name: str) -> Any:
    """The default as it is written in the file, and in TOML's types; None if it is unset."""
    value: Any = Settings.model_fields[name].get_default(call_default_factory=True)
    if value is None or isinstance(value, bool | list):
        return value
    if holds_duration(name):
        return format_duration(value)
    if holds_bytes(name):
        return bytes_text(value)
    return value if isinstance(value, int) else str(value)


def _default(name: str) -> str:
    value = _value(name)
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    return "none" if value == [] else f"`{value}`"


def _toml(name: str) -> str:
    value = _value(name)
    if value is None:
        return "  # unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
