"""Settings and limits of MCP."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import setting


@dataclass(frozen=True, slots=True)
class McpOptions:
    """Whether clients may use the server over MCP, and how many requests at once."""

    enabled: bool = setting(
        False,
        "Serve `/mcp`, where MCP clients use timers and schedules with the rights of their API key. `tocsin mcp` needs it, "
        "too. Requires the extra `tocsin[mcp]`.",
    )
    calls_max: int = setting(
        16,
        "Requests to `/mcp` that a node works on at once; more are answered 503. Higher values serve more clients, and leave "
        "less of the processor to timers.",
    )


#: Timers of one cancel or replay: a person can still read the list. Jobs of the API change any number.
IDS_MAX = 100
#: How long the token of a dry run can be used, in seconds: as long as a person needs to read it.
CONFIRM_WITHIN_S = 300
#: Rows of a page, and by default. Models read each of them.
ROWS_MAX, ROWS_DEFAULT = 100, 20
#: Characters of a text in a list; `get_timer` and `get_schedule` show the rest.
ROW_TEXT_CHARS_MAX = 300
#: Characters of a payload, or of a text within it, that `get_timer` and `get_schedule` show.
PAYLOAD_CHARS_MAX = 10_000
#: Instants in the dry run of a schedule.
INSTANTS_SHOWN = 5
