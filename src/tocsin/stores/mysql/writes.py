"""Writes in MySQL. A batch is one transaction in three round trips: fences, rows, COMMIT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from asyncmy import errors

from tocsin.ports.store import SCHEDULES_SUFFIX, Applied, ShardBatch, check_lengths
from tocsin.sql.dialect import Step
from tocsin.sql.keys import LeftEdges, at_least, at_most
from tocsin.sql.rows import (
    FAILURE_COLUMNS,
    HISTORY_COLUMNS,
    LIVE,
    ROW_COLUMNS,
    RUN_COLUMNS,
    SUSPENDED,
    cut,
    tags_text,
)
from tocsin.sql.store import remove_failures
from tocsin.stores.mysql.dialect import DIALECT
from tocsin.stores.mysql.driver import Connection, Result
from tocsin.stores.mysql.errors import DUPLICATE, code_of
from tocsin.stores.mysql.text import (
    bytes_literal,
    filled,
    hexed,
    inserts,
    instant,
    listed,
    literal,
    packets,
    place_range,
    text,
)
from tocsin.stores.options import MysqlOptions

BEGIN = b"BEGIN"

_UPSERT_HEAD = f"INSERT INTO timers (shard_id, row_type, {ROW_COLUMNS}) VALUES ".encode()
# Updates the uuid's present row under any key: the primary key can belong to another row only if the uuid is the same.
_UPSERT_TAIL = DIALECT.or_update(
    "", "row_type", "timer_execute_at", "timer_generation", "timer_namespace", "timer_id", "timer_tags", "timer_record",
    "timer_suspended_reason",
).encode()  # fmt: skip
_HISTORY_HEAD = f"INSERT INTO history (shard_id, {HISTORY_COLUMNS}) VALUES ".encode()
_HISTORY_TAIL = DIALECT.or_update(
    "", "timer_execute_at", "timer_namespace", "timer_id", "timer_tags", "timer_record", "timer_status",
    "timer_finished_at", "timer_expires_at",
).encode()  # fmt: skip
_RUN_HEAD = f"INSERT INTO runs (shard_id, {RUN_COLUMNS}) VALUES ".encode()
_SCHEDULE_HEAD = b"INSERT INTO schedules (schedule_namespace, schedule_id, schedule_shard, schedule_uuid) VALUES "
_SCHEDULE_TAIL = DIALECT.or_update("", "schedule_shard", "schedule_uuid").encode()
_RUN_TAIL = DIALECT.or_update("", "run_record", "run_expires_at").encode()
_FAILURE_HEAD = f"INSERT INTO failures (shard_id, {FAILURE_COLUMNS}) VALUES ".encode()
_FAILURE_TAIL = DIALECT.or_update("", *FAILURE_COLUMNS.split(", ")[2:]).encode()
# With another index, which MySQL chooses for small tables, a DELETE would sort, and lock all rows that it reads, other
# shards' rows among them. The hint for MySQL (8.0.20 or newer) is a comment for MariaDB, and what only TiDB reads for both.
_RANGE_DELETE = b"DELETE /*+ INDEX(timers PRIMARY) */ FROM timers /*T! FORCE INDEX (PRIMARY) */ "
# MariaDB supports a hint only in the multi-table form of DELETE, in which MySQL reads the whole table if it has fewer rows
# than there are uuids, whatever the hint. The parts for MariaDB and for TiDB are comments for the others.
_UUID_DELETE = (
    b"DELETE /*+ INDEX(timers timers_by_uuid) */ /*M! timers */ FROM timers /*M! FORCE INDEX (timers_by_uuid) */ "
    b"/*T! FORCE INDEX (timers_by_uuid) */ WHERE shard_id = %d AND timer_uuid IN %b"
)


async def apply(
    connection: Connection, batches: Sequence[ShardBatch], edges: LeftEdges, options: MysqlOptions
) -> list[Applied]:
    """Writes the parts whose fence holds, in one transaction. No other `apply` may run for these shards at the same time."""
    parts = sorted(batches, key=lambda batch: batch.shard_id)
    known = {part.shard_id: edges.take(part) for part in parts}
    packet_bytes_max = min(options.statement_bytes_max, connection.server.packet_bytes_max)

    def written(held: Sequence[ShardBatch]) -> tuple[list[bytes], list[list[bytes]]]:
        return (
            list(range_deletes(held, known, options.delete_rows_max)),
            list(packets(_row_statements(held, packet_bytes_max), packet_bytes_max)),
        )

    # Prepared before anything is locked.
    whole = written(parts)

    async def work() -> Sequence[ShardBatch]:
        held = await _fence(connection, parts)
        ranges, rows = whole if len(held) == len(parts) else written(held)
        await _delete_ranges(connection, ranges, options.delete_rows_max, packet_bytes_max)
        for packet in rows:
            await connection.run(*packet)
        return held

    held = {part.shard_id: part for part in await connection.transaction(work, options.undone_retries_max)}
    for part in held.values():
        edges.put(part, known[part.shard_id])
    return [Applied.DURABLE if batch.shard_id in held else Applied.OWNERSHIP_LOST for batch in batches]


def fence(parts: Sequence[ShardBatch]) -> bytes:
    """Updates the shard rows whose epoch and owner are still those of the parts. It is the first statement, and a write: a
    concurrent claim waits for this transaction, or this one finds another epoch."""
    theirs = b" OR ".join(
        b"(shard_id = %d AND shard_version = %b AND shard_owner = %b)"
        % (part.shard_id, instant(part.epoch), hexed(part.owner))
        for part in parts
    )
    return (
        b"UPDATE timers FORCE INDEX (PRIMARY) SET shard_batches = shard_batches + 1 WHERE shard_id IN %b "
        b"AND row_type = 1 AND timer_execute_at = 0 AND timer_uuid = '' AND (%b)"
    ) % (listed(b"%d" % part.shard_id for part in parts), theirs)


async def _fence(connection: Connection, parts: Sequence[ShardBatch]) -> Sequence[ShardBatch]:
    """Begins the transaction; returns the parts whose fence holds."""
    _, fenced = await connection.run(BEGIN, fence(parts))
    if fenced.affected == len(parts):
        return parts
    # One statement can't report which ones. This is rare, so they are checked one by one, in the same order on every node.
    await connection.run(b"ROLLBACK", BEGIN)
    return [part for part in parts if (await connection.run(fence([part])))[0].affected]


def range_deletes(parts: Sequence[ShardBatch], edges: dict[int, tuple[int, bytes]], rows_max: int) -> Iterator[bytes]:
    """A DELETE for each range, of at most `rows_max` rows in key order."""
    for part in parts:
        last = None if part.delete_to is None else at_most(part.delete_to)
        first = at_least(edges[part.shard_id])
        if last is not None and first <= last:
            yield (
                _RANGE_DELETE + b"WHERE shard_id = %d AND row_type = 2 AND %b "
                b"ORDER BY timer_execute_at, timer_uuid LIMIT %d"
            ) % (part.shard_id, place_range(first, last), rows_max)


async def _delete_ranges(
    connection: Connection, statements: Sequence[bytes], rows_max: int, packet_bytes_max: int
) -> None:
    """Repeats each statement until it deletes fewer than `rows_max` rows."""
    left = list(statements)
    while left:
        results: list[Result] = []
        for packet in packets(left, packet_bytes_max):
            results += await connection.run(*packet)
        left = [statement for statement, result in zip(left, results, strict=True) if result.affected >= rows_max]


def _row_statements(parts: Sequence[ShardBatch], bytes_max: int) -> Iterator[bytes]:
    upserts = chain.from_iterable(_upsert_rows(part) for part in parts)
    history = chain.from_iterable(_history_rows(part) for part in parts)
    runs = chain.from_iterable(_run_rows(part) for part in parts)
    for part in parts:
        for uuids in cut([hexed(uuid) for uuid in sorted(part.deletes)]):
            yield uuid_delete(part.shard_id, uuids)
    yield from inserts(_UPSERT_HEAD, upserts, _UPSERT_TAIL, bytes_max)
    yield from inserts(_HISTORY_HEAD, history, _HISTORY_TAIL, bytes_max)
    yield from inserts(_RUN_HEAD, runs, _RUN_TAIL, bytes_max)
    failures = chain.from_iterable(_failure_rows(part) for part in parts)
    yield from inserts(_FAILURE_HEAD, failures, _FAILURE_TAIL, bytes_max)
    for part in parts:
        for step in remove_failures(DIALECT, part.shard_id, part.resolved):
            yield filled(step.sql, step.values)
    hints = chain.from_iterable(_schedule_rows(part) for part in parts)
    yield from inserts(_SCHEDULE_HEAD, hints, _SCHEDULE_TAIL, bytes_max)
    for part in parts:
        yield from _ended_schedules(part)


def uuid_delete(shard_id: int, uuids: Sequence[bytes]) -> bytes:
    """A DELETE of live and suspended rows by uuid."""
    return _UUID_DELETE % (shard_id, listed(uuids))


def _upsert_rows(part: ShardBatch) -> Iterator[bytes]:
    shard = part.shard_id
    # In key order, so that neighbours in the index are written together.
    for row in sorted(part.upserts):
        at, uuid, generation, namespace, timer_id, tags, record, suspended = row
        check_lengths(row)
        yield b"(%d,%d,%b,%b,%b,%b,%b,%b,%b,%b)" % (
            shard, LIVE if suspended is None else SUSPENDED, instant(at), hexed(uuid), hexed(generation), text(namespace),
            text(timer_id), text(tags_text(tags)) if tags else b"NULL", bytes_literal(record), literal(suspended),
        )  # fmt: skip


def _history_rows(part: ShardBatch) -> Iterator[bytes]:
    shard = part.shard_id
    for row in sorted(part.history):
        at, uuid, generation, namespace, timer_id, tags, record, status, finished_at, expires_at = row
        check_lengths(row)
        yield b"(%d,%b,%b,%b,%b,%b,%b,%b,%b,%b,%b)" % (
            shard, instant(at), hexed(uuid), hexed(generation), text(namespace), text(timer_id),
            text(tags_text(tags)) if tags else b"NULL", bytes_literal(record), text(status.value), instant(finished_at),
            instant(expires_at),
        )  # fmt: skip


def _schedule_rows(part: ShardBatch) -> Iterator[bytes]:
    for row in part.upserts:
        if row.namespace.endswith(SCHEDULES_SUFFIX):
            yield b"(%b,%b,%d,%b)" % (
                hexed(row.namespace.encode()), hexed(row.timer_id.encode()), part.shard_id, hexed(row.uuid),
            )  # fmt: skip


def _ended_schedules(part: ShardBatch) -> Iterator[bytes]:
    """Deletes of the hints of schedules that end."""
    for row in part.history:
        if row.namespace.endswith(SCHEDULES_SUFFIX) and row.uuid in part.deletes:
            yield b"DELETE FROM schedules WHERE schedule_namespace = %b AND schedule_id = %b" % (
                hexed(row.namespace.encode()), hexed(row.timer_id.encode()),
            )  # fmt: skip


def _run_rows(part: ShardBatch) -> Iterator[bytes]:
    for row in sorted(part.runs):
        check_lengths(row)
        yield b"(%d,%b,%b,%b,%b)" % (
            part.shard_id, hexed(row.uuid), hexed(row.generation), bytes_literal(row.record), instant(row.expires_at),
        )  # fmt: skip


def _failure_rows(part: ShardBatch) -> Iterator[bytes]:
    for row in sorted(part.failures):
        check_lengths(row)
        yield b"(%d,%b)" % (part.shard_id, b",".join(literal(value) for value in row))


async def transact(connection: Connection, steps: Sequence[Step], undone_retries_max: int) -> int:
    """Runs the statements in one transaction. Returns how many rows the last one found or changed: 0 also if a required one
    before found none, or if a row to be inserted exists."""

    async def work() -> int:
        matched, begin = 0, [BEGIN]
        for step in steps:
            result = (await connection.run(*begin, filled(step.sql, step.values)))[-1]
            matched, begin = len(result.rows) or result.affected, []
            if step.required and not matched:
                break
        return matched

    try:
        return await connection.transaction(work, undone_retries_max)
    except errors.IntegrityError as error:
        if code_of(error) == DUPLICATE:
            return 0
        raise
