"""Generates the pages of docs/reference that are made from the code; with --check, only reports stale pages."""

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
from tocsin.config.order import topics
from tocsin.config.settings import is_duration, limit_setting
from tocsin.engine.limits import EngineLimits
from tocsin.model.instants import format_duration
from tocsin.model.validation import InputLimits
from tocsin.ui.limits import UiLimits

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
GENERATED = "<!-- Made by scripts/reference.py from the code; edit that, then run `make docs`. -->\n"
HELP_WIDTH = 96

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

Some go by a second name in the environment, which counts where the first is unset: `TIMER_POLLING_INTERVAL` (in
milliseconds), `TIMER_BATCH_SIZE`, `TIMER_DB_PATH` or `DB_PATH`, and `TIMER_BROKER_URL`; each stands beside its setting.
"""

#: The dataclasses whose fields' comments describe settings.
LIMITS = (
    EngineLimits, CallbackLimits, InputLimits, ApiLimits, UiLimits, AgentLimits, BusLimits, SqlSettings, ClusterLimits,
)  # fmt: skip


def settings_page() -> str:
    """The page of all settings, by topic."""
    texts = {}
    for kind in LIMITS:
        texts |= _limits(kind)
    texts |= {name: str(field.description) for name, field in Settings.model_fields.items() if field.description}
    head = "| setting | variable | default | meaning |\n| --- | --- | --- | --- |\n"
    parts = [GENERATED, SETTINGS_INTRO]
    for topic, fields in topics():
        rows = "".join(_row(field, texts[field]) for field in fields)
        parts.append("\n".join([f"## {topic.title}\n", *([topic.intro + "\n"] if topic.intro else []), head + rows]))
    return "\n".join(parts)


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
    """The comment above each of a dataclass's fields, by setting."""
    texts: dict[str, str] = {}
    names = {field.name: limit_setting(kind, field) for field in dataclasses.fields(kind)}
    comment: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        if (said := re.match(r"\s*#: ?(.*)", line)) is not None:
            comment.append(said[1])
        elif (field := re.match(r"\s*(\w+): (?:int|float|str)\b", line)) is not None:
            texts[names[field[1]]] = " ".join(comment)
            comment = []
    return texts


def cli_page() -> str:
    """docs/reference/cli.md: the help of every command, in order."""
    root = typer.main.get_command(app)
    parts = [
        GENERATED,
        "# Commands\n",
        "Exit codes: 0 success, 1 the server or the store rejected the command, 2 usage error, 3 no answer from the server. "
        "Results go to standard output, everything else to standard error; `--json` prints JSON for programs.\n",
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
    """The expected text of each page."""
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
    """Writes the pages; with --check, writes nothing and returns 1 if one differs."""
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
