"""The variants of the table of timers that `python -m bench.churn` compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Variant:
    """A difference from the shipped schema. `system` are server settings, which are reset afterwards."""

    name: str
    meaning: str
    table_sql: str = ""
    system: tuple[tuple[str, str], ...] = ()
    left_edges: bool = True
    partitions: int = 0


_RESET = (
    "ALTER TABLE timers RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, "
    "autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor, "
    "vacuum_truncate)"
)

_NAPTIME = (("autovacuum_naptime", "1min"),)

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("shipped", "the shipped schema, autovacuum_naptime 10 s"),
        Variant("slow-naptime", "the shipped schema, PostgreSQL's default naptime", system=_NAPTIME),
        Variant("default-vacuum", "PostgreSQL's defaults for all autovacuum settings", _RESET, system=_NAPTIME),
        Variant("no-vacuum", "no vacuum at all", "ALTER TABLE timers SET (autovacuum_enabled = off)"),
        Variant("clean-index", "vacuum_index_cleanup on", "ALTER TABLE timers SET (vacuum_index_cleanup = on)"),
        Variant("full-pages", "fillfactor 100", "ALTER TABLE timers SET (fillfactor = 100)"),
        Variant("loose-pages", "fillfactor 70", "ALTER TABLE timers SET (fillfactor = 70)"),
        Variant("partitions", "8 hash partitions by shard", partitions=8),
        Variant("no-hint", "range deletes from the beginning of the shard", left_edges=False),
    )
}

#: Replaces the shipped table with a partitioned one of the same definition.
_PARTITIONED = """
ALTER TABLE timers RENAME TO plain_timers;
CREATE TABLE timers (LIKE plain_timers INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
  PRIMARY KEY (shard_id, row_type, timer_execute_at, timer_uuid)) PARTITION BY HASH (shard_id);
CREATE UNIQUE INDEX timers_p_by_uuid ON timers (shard_id, timer_uuid) WHERE timer_id IS NOT NULL;
CREATE UNIQUE INDEX timers_p_shards ON timers (shard_id) WHERE row_type = 1;
DROP TABLE plain_timers;
"""


async def prepared(session: Any, schema: str, variant: Variant) -> None:
    """Applies the variant to an opened, empty schema. Requires a superuser's session outside a transaction."""
    for name, value in variant.system:
        await session.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    await session.execute("SELECT pg_reload_conf()")
    await session.execute(f"SET search_path = {schema}")
    if variant.table_sql:
        await session.execute(variant.table_sql)
    if variant.partitions:
        options = ", ".join(await session.fetchval("SELECT reloptions FROM pg_class WHERE oid = 'timers'::regclass"))
        await session.execute(_PARTITIONED)
        for number in range(variant.partitions):
            await session.execute(
                f"CREATE TABLE timers_p{number} PARTITION OF timers "
                f"FOR VALUES WITH (MODULUS {variant.partitions}, REMAINDER {number}) WITH ({options})"
            )


async def put_back(session: Any, variant: Variant) -> None:
    """Resets the variant's settings on the server."""
    for name, _ in variant.system:
        await session.execute(f"ALTER SYSTEM RESET {name}")
    await session.execute("SELECT pg_reload_conf()")
