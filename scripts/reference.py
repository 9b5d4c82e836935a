"""Generates the pages of docs/reference that are made from the code; with --check, only reports stale pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer.main

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from reference_api import api_page, errors_page
from reference_mcp import mcp_page
from reference_settings import example_file, settings_page
from reference_telemetry import events_page, metrics_page
from scripts.openapi.declaration import declaration_schema
from scripts.openapi.document import describe

from tocsin.cli.app import app

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
#: The file that every server returns, to which docs/reference/openapi.json is a link.
SERVED = Path(__file__).parent.parent / "src" / "tocsin" / "web" / "api" / "openapi.json"
#: What `tocsin apply --schema` prints, to which docs/reference/declaration.schema.json is a link.
DECLARATION = Path(__file__).parent.parent / "src" / "tocsin" / "cli" / "declared" / "schema.json"
GENERATED = "<!-- Made by scripts/reference.py from the code; edit that, then run `make docs`. -->\n"
HELP_WIDTH = 96


def cli_page() -> str:
    """docs/reference/cli.md: the help of every command, in order."""
    root = typer.main.get_command(app)
    parts = [
        GENERATED,
        "# Commands\n",
        "Exit codes: 0 success, 1 the server or the store rejected the command, 2 usage error, 3 no answer from the server; "
        "[all of them](errors.md#exit-codes). "
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
        REFERENCE / "mcp.md": mcp_page(GENERATED),
        REFERENCE / "metrics.md": metrics_page(GENERATED),
        SERVED: describe().decode(),
        DECLARATION: declaration_schema().decode(),
        REFERENCE / "settings.md": settings_page(GENERATED),
        REFERENCE / "tocsin.toml": example_file(),
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
