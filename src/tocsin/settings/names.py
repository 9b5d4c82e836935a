"""How a setting is written: `egress.allow` in the file and in messages, TOCSIN_EGRESS_ALLOW in the environment."""

from __future__ import annotations

ENV_PREFIX = "TOCSIN_"
#: Tables of the file. A field `egress_allow` of one of them is the setting `egress.allow`. A name that begins as another
#: one does stands before it.
TABLES = (
    "agent_sql",
    "agent",
    "api",
    "bus",
    "callbacks",
    "cluster",
    "database",
    "dynamodb",
    "egress",
    "mysql",
    "postgresql",
    "sqlite",
    "tracing",
    "ui",
)
#: Settings outside any table whose names begin as a table's do.
_OUTSIDE = frozenset({"callbacks_in_flight_max"})


def setting_name(field: str) -> str:
    """How a field is written in the file and in messages: `egress.allow` for `egress_allow`."""
    for table in TABLES:
        if field.startswith(f"{table}_") and field not in _OUTSIDE:
            return f"{table}.{field.removeprefix(f'{table}_')}"
    return field


def env_name(field: str) -> str:
    """The environment variable of a field."""
    return ENV_PREFIX + field.upper()


def flag_name(field: str) -> str:
    """The flag of a field, where `tocsin serve` has one."""
    return "--" + field.replace("_", "-")
