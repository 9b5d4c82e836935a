"""Writes the pages of docs/reference that are made from the code; with --check, only says if they are stale."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import typer.main

sys.path.insert(0, str(Path(__file__).parent))

from reference_api import api_page, errors_page
from reference_telemetry import events_page, metrics_page

from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.agent.limits import AgentLimits
from tocsin.api.call import ApiLimits
from tocsin.api.openapi import describe
from tocsin.buses.limits import BusLimits
from tocsin.callbacks.limits import CallbackLimits
from tocsin.cli.app import app
from tocsin.cluster.limits import ClusterLimits
from tocsin.config import Settings, env_name, setting_name
from tocsin.config.settings import is_duration, limit_setting
from tocsin.engine.limits import EngineLimits
from tocsin.model.instants import format_duration
from tocsin.model.validation import InputLimits
from tocsin.ui.limits import UiLimits

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
GENERATED = "<!-- Made by scripts/reference.py from the code; edit that, then run `make docs`. -->\n"
HELP_WIDTH = 96

#: Limits whose dataclass says nothing beside them, because their names do.
OTHERWISE_UNDESCRIBED = {
    "id_chars_max": "Characters of a timer's id.",
    "url_chars_max": "Characters of a callback URL.",
    "payload_bytes_max": "Bytes of a payload, as sent or as a rescheduling answer brings it.",
    "headers_max": "Headers that a timer can bring.",
    "header_name_chars_max": "Characters of a header's name.",
    "header_value_chars_max": "Characters of a header's value.",
    "tags_max": "Tags of a timer.",
    "tag_chars_max": "Characters of a tag.",
    "callback_timeout_min": "Shortest `callbackTimeoutSeconds` that a timer can ask for.",
    "callback_timeout_max": "Longest `callbackTimeoutSeconds` that a timer can ask for.",
    "attempts_max": "Greatest `maxAttempts`.",
    "backoff_multiplier_max": "Greatest `backoffMultiplier`.",
    "retention_max": "Longest retention of a namespace.",
    "num_shards_max": "Greatest `numShards` of a namespace.",
    "list_rows_max": "Greatest `limit` of a list.",
    "cursor_chars_max": "Characters of a list's cursor.",
}

SETTINGS_INTRO = """# Settings

Each setting can come from a flag of `tocsin serve` (where there is one), from the environment, or from a TOML file; the
first of them that has it wins, else the default does. The file is named by `--config` or `TOCSIN_CONFIG`:

```toml
port = 9000
log_format = "json"

[egress]
allow = ["10.1.0.0/16", "hooks.internal:8080"]

[sqlite]
synchronous = "NORMAL"
```

Durations are texts such as `500ms`, `30s`, `5m`, `24h`, `7d`; bytes are numbers or texts such as `64MiB`; lists are
written `one,two` in the environment. A key that is no setting is an error, so that a slip can't pass for a setting.
`tocsin config show` prints every value in force and where it came from, `tocsin config check` only whether all is well.
"""

SECTIONS: tuple[tuple[str, str, type | None], ...] = (
    ("The server", "", None),
    ("The engine", "How the timer engine spends memory, time and the store.", EngineLimits),
    ("Callbacks", "The HTTP client that calls the webhooks.", CallbackLimits),
    ("Timers", "What a timer, a namespace or a list can ask for.", InputLimits),
    ("Requests", "HTTP requests as such.", ApiLimits),
    ("Web pages", "What the pages take and keep.", UiLimits),
    (
        "The service agent",
        "Service calls: what they can ask for, and how the agent spends time and memory.",
        AgentLimits,
    ),
    ("The agent's messages", "Between its modules, within the process or over a broker.", BusLimits),
    (
        "The agent's database",
        "Beside `sqlite.synchronous` and `sqlite.busy_timeout`, which hold for it too.",
        SqlSettings,
    ),
    ("Between nodes", "Nodes that share a store; see [how to run several](../how-to/several-nodes.md).", ClusterLimits),
)


def settings_page() -> str:
    """The page of all settings, by section."""
    described: set[str] = {"config"}
    tables = []
    for title, intro, kind in reversed(SECTIONS):
        texts = (
            _limits(kind) if kind else {name: str(field.description) for name, field in Settings.model_fields.items()}
        )
        rows = [_row(field, text) for field, text in texts.items() if field not in described]
        described |= texts.keys()
        head = "| setting | variable | default | meaning |\n| --- | --- | --- | --- |\n"
        tables.append(
            "\n".join(part for part in (f"## {title}\n", intro and intro + "\n", head + "".join(rows)) if part)
        )
    return GENERATED + "\n" + SETTINGS_INTRO + "\n" + "\n".join(reversed(tables))


def _row(field: str, text: str) -> str:
    return f"| `{setting_name(field)}` | `{env_name(field)}` | {_default(field)} | {text} |\n"


def _default(field: str) -> str:
    value: Any = Settings.model_fields[field].get_default(call_default_factory=True)
    if value is None:
        return "unset"
    if is_duration(field):
        return f"`{format_duration(value)}`"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if "bytes" in field and value and not value % 1024:
        return f"`{value >> 20}MiB`" if not value % (1 << 20) else f"`{value >> 10}KiB`"
    return "none" if value == [] else f"`{value}`"


def _limits(kind: type) -> dict[str, str]:
    """The comments beside a dataclass's fields, by setting. A field without one shares the one before it."""
    texts, comment = {}, ""
    names = {field.name: limit_setting(kind, field) for field in dataclasses.fields(kind)}
    fresh: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        if (said := re.match(r"\s*#: ?(.*)", line)) is not None:
            fresh.append(said[1])
        elif (field := re.match(r"\s*(\w+): (?:int|float|str)\b", line)) is not None:
            name = names[field[1]]
            comment = " ".join(fresh) or OTHERWISE_UNDESCRIBED.get(name, comment)
            fresh = []
            texts[name] = comment
    return texts


def cli_page() -> str:
    """The page of all commands: their own help, in order."""
    root = typer.main.get_command(app)
    parts = [
        GENERATED,
        "# Commands\n",
        "Exit codes: 0 done, 1 the server (or the store) said no, 2 wrong usage, 3 no answer from the server. Results go "
        "to standard output, everything else to standard error; `--json` prints JSON for programs.\n",
    ]
    for path, command in _commands(root, "tocsin"):
        level = "##" if path.count(" ") <= 1 else "###"
        with command.make_context(path, [], resilient_parsing=True) as context:
            context.terminal_width = context.max_content_width = HELP_WIDTH
            formatter = context.make_formatter()
            command.format_help(context, formatter)
            parts.append(f"{level} {path}\n\n```text\n{formatter.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)


def _commands(command: Any, path: str) -> list[tuple[str, Any]]:
    found = [(path, command)]
    for name, inner in getattr(command, "commands", {}).items():
        found += _commands(inner, f"{path} {name}")
    return found


def pages() -> dict[Path, str]:
    """What each page should hold."""
    return {
        REFERENCE / "api.md": api_page(GENERATED),
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "errors.md": errors_page(GENERATED),
        REFERENCE / "events.md": events_page(GENERATED),
        REFERENCE / "metrics.md": metrics_page(GENERATED),
        REFERENCE / "openapi.json": describe().decode(),
        REFERENCE / "settings.md": settings_page(),
    }


def main() -> int:
    """Writes the pages, or with --check returns 1 if one differs."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(REFERENCE.parent.parent)} is stale: run `make docs`")
        return 1 if stale else 0
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
