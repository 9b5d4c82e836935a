"""The page of the MCP tools, made from their declarations."""

from __future__ import annotations

from typing import Any

from tocsin.web.api.mcp import options
from tocsin.web.api.mcp.schema import input_schema
from tocsin.web.api.mcp.tools import TOOLS, Tool

INTRO = f"""# MCP tools

The tools that [MCP clients](../how-to/mcp.md) find at `/mcp`. Each answer is a text in JSON. What others have written is
below `data`; a failed call has `error`, a [stable code](errors.md), `message`, and `errors` with the arguments that were
refused and why.

A tool that *shows* changes nothing: its answer has `confirm`, which is what [confirm](#confirm) takes. The token is bound to
the caller's key, the arguments and what the dry run has found, for {options.CONFIRM_WITHIN_S // 60} minutes.

## Limits

| what | limit |
| --- | --- |
| timers of one `cancel_timers` or `replay_timers` | {options.IDS_MAX} |
| rows of a list | {options.ROWS_MAX}, {options.ROWS_DEFAULT} unless asked for |
| characters of a text in a list | {options.ROW_TEXT_CHARS_MAX}; the rest is left out |
| characters of a payload in `get_timer` and `get_schedule` | {options.PAYLOAD_CHARS_MAX:,}; the rest is left out |
| how long a token can be used | {options.CONFIRM_WITHIN_S} s |
| requests that a node works on at once | `mcp.calls_max` |
| bytes of a request | `api.request_bytes_max` |
"""


def mcp_page(generated: str) -> str:
    """docs/reference/mcp.md."""
    return "\n".join([generated, INTRO, *map(_section, TOOLS)])


def _section(tool: Tool) -> str:
    effect = (
        "changes and removes" if tool.destroys else "creates" if tool.writes else "shows" if tool.dry_run else "reads"
    )
    schema = input_schema(tool.arguments)
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {_type(field)} | {'yes' if name in required else ''} | {field.get('description', '')} |"
        for name, field in schema["properties"].items()
    ]
    table = "\n".join(["| argument | type | required | meaning |", "| --- | --- | --- | --- |", *rows])
    return f"## {tool.name}\n\n*{effect.capitalize()}.* {tool.description}\n\n{table}\n"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        inner = field["items"]
        return f"list of {_type(inner) if 'enum' in inner else inner['type'] + 's'}"
    return str(field.get("type", "JSON"))
