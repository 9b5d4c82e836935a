"""Writes in PostgreSQL. A batch is one call of the schema's function `apply_batch`, with each column as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.ports.store import Applied, FireKey, HistoryRow, ShardBatch, StoredRow
from tocsin.sql.dialect import Step
from tocsin.sql.keys import LeftEdges, at_least, at_most
from tocsin.sql.rows import FAILURE_COLUMNS, RUN_COLUMNS, tags_text
from tocsin.stores.postgresql.dialect import DIALECT, numbered
from tocsin.stores.postgresql.driver import Connection, affected
from tocsin.stores.postgresql.errors import TRANSLATED, is_unusable

_PARAMETERS = 30
_CALL = f"apply_batch({', '.join(f'${i}' for i in range(1, _PARAMETERS + 1))})"
APPLY = f"SELECT {_CALL}"


def _inserted(name: str, table: str, key: str, columns: str, types: str, first: int) -> str:
    """Inserts rows of arrays, of the parts whose fence holds, as a part of a statement."""
    names = columns.split(", ")
    arrays = ", ".join(f"${first + i}::{each}[]" for i, each in enumerate(types.split()))
    update = DIALECT.or_update(f"shard_id, {key}", *(each for each in names if each not in key))
    return (
        f"{name} AS (INSERT INTO {table} (shard_id, {columns}) SELECT r.* FROM applied, unnest({arrays}) "
        f"AS r (shard, {columns}) WHERE r.shard = ANY (applied.held){update})"
    )


_RUN_TYPES, _FAILURE_TYPES = "integer uuid bytea bytea bigint", "integer uuid bytea text text text bigint bigint bigint"
_FIRST_RUN = _PARAMETERS + 1
_FIRST_FAILURE = _FIRST_RUN + len(_RUN_TYPES.split())
_FIRST_RESOLVED = _FIRST_FAILURE + len(_FAILURE_TYPES.split())
#: The same for batches with runs or failures, as one statement. Few have any.
APPLY_WITH_RUNS = (
    f"WITH applied AS MATERIALIZED (SELECT {_CALL} AS held), "
    f"{_inserted('kept', 'runs', 'run_uuid, run_generation', RUN_COLUMNS, _RUN_TYPES, _FIRST_RUN)}, "
    + _inserted(
        "failed", "failures", "failure_uuid, failure_generation", FAILURE_COLUMNS, _FAILURE_TYPES, _FIRST_FAILURE
    )
    + ", resolved AS (DELETE FROM failures AS f USING applied, "
    f"unnest(${_FIRST_RESOLVED}::integer[], ${_FIRST_RESOLVED + 1}::uuid[], ${_FIRST_RESOLVED + 2}::bytea[]) "
    "AS r (shard, uuid, generation) WHERE r.shard = ANY (applied.held) AND f.shard_id = r.shard "
    "AND f.failure_uuid = r.uuid AND f.failure_generation = r.generation) SELECT held FROM applied"
)


async def apply(connection: Connection, batches: Sequence[ShardBatch], edges: LeftEdges) -> list[Applied]:
    """Writes the parts whose fence holds. No other `apply` may run for these shards at the same time."""
    parts = sorted(batches, key=lambda batch: batch.shard_id)
    known = {part.shard_id: edges.take(part) for part in parts}
    arguments = (
        [part.shard_id for part in parts],
        [part.epoch for part in parts],
        [part.owner for part in parts],
        *_ranges(parts, known),
        *_deletes(parts),
        *_upserts(parts),
        *_history(parts),
    )
    if any(part.runs or part.failures or part.resolved for part in parts):
        runs = _columns([(part.shard_id, *row) for part in parts for row in part.runs], _RUN_TYPES)
        failures = _columns([(part.shard_id, *row) for part in parts for row in part.failures], _FAILURE_TYPES)
        resolved = _columns([(part.shard_id, *row) for part in parts for row in part.resolved], "shard uuid generation")
        held = set(await connection.fetchval(APPLY_WITH_RUNS, *arguments, *runs, *failures, *resolved))
    else:
        held = set(await connection.fetchval(APPLY, *arguments))
    for part in parts:
        if part.shard_id in held:
            edges.put(part, known[part.shard_id])
    return [Applied.DURABLE if batch.shard_id in held else Applied.OWNERSHIP_LOST for batch in batches]


def _ranges(parts: Sequence[ShardBatch], edges: dict[int, FireKey]) -> tuple[list[Any], ...]:
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    for part in parts:
        end = None if part.delete_to is None else at_most(part.delete_to)
        if end is not None:
            values = (part.shard_id, *at_least(edges[part.shard_id]), *end)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    return columns


def _deletes(parts: Sequence[ShardBatch]) -> tuple[list[int], list[bytes]]:
    shards: list[int] = []
    uuids: list[bytes] = []
    for part in parts:
        shards += [part.shard_id] * len(part.deletes)
        uuids += sorted(part.deletes)
    return shards, uuids


def _upserts(parts: Sequence[ShardBatch]) -> tuple[Sequence[Any], ...]:
    shards: list[int] = []
    rows: list[StoredRow] = []
    for part in parts:
        shards += [part.shard_id] * len(part.upserts)
        # In key order, so that neighbours in the index are written together.
        rows += sorted(part.upserts)
    if not rows:
        return ((),) * 9
    *columns, tags, records, suspended = zip(*rows, strict=True)
    # PostgreSQL's texts can't contain U+0000, and the reason must not keep a row from being suspended.
    reasons = (
        [reason and reason.replace("\0", "") for reason in suspended] if any(r is not None for r in suspended) else ()
    )
    return shards, *columns, _tags(tags), records, reasons


def _history(parts: Sequence[ShardBatch]) -> tuple[Sequence[Any], ...]:
    shards: list[int] = []
    rows: list[HistoryRow] = []
    for part in parts:
        shards += [part.shard_id] * len(part.history)
        rows += part.history
    if not rows:
        return ((),) * 11
    *columns, tags, records, statuses, finished_at, expires_at = zip(*rows, strict=True)
    return shards, *columns, _tags(tags), records, [status.value for status in statuses], finished_at, expires_at


def _columns(rows: Sequence[tuple[Any, ...]], types: str) -> Sequence[Sequence[Any]]:
    return tuple(zip(*rows, strict=True)) if rows else [()] * len(types.split())


def _tags(every: Sequence[tuple[str, ...]]) -> Sequence[str | None]:
    # unnest() fills what one array lacks next to longer ones with NULL.
    return [tags_text(tags) if tags else None for tags in every] if any(every) else ()


async def transact(connection: Connection, steps: Sequence[Step]) -> int:
    """Runs the statements in one transaction. Returns how many rows the last one found or changed; 0 also if a required one
    before found none."""
    if len(steps) == 1:
        return await _run(connection, steps[0])
    matched = 0
    await connection.execute("BEGIN")
    try:
        for step in steps:
            matched = await _run(connection, step)
            if step.required and not matched:
                break
    except TRANSLATED as error:
        if not is_unusable(error):
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")
    return matched


async def _run(connection: Connection, step: Step) -> int:
    return affected(await connection.execute(numbered(step.sql), *step.values))
