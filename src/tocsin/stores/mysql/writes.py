"""Writes in MySQL. A batch is one transaction in three round trips: fences, rows, COMMIT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from asyncmy import errors

from tocsin.model.errors import DefiniteFailure
from tocsin.ports.store import GENERATION_BYTES, Applied, HistoryRow, Member, ShardBatch, StoredRow
from tocsin.sql.keys import LeftEdges, at_least, at_most
from tocsin.sql.rows import LIVE, SUSPENDED
from tocsin.sql.tags import tags_text
from tocsin.stores.mysql.driver import Connection, Result
from tocsin.stores.mysql.errors import DUPLICATE, code_of
from tocsin.stores.mysql.text import (
    bytes_literal,
    cut,
    hexed,
    inserts,
    instant,
    listed,
    packets,
    place_range,
    text,
    text_or_null,
)

BEGIN = b"BEGIN"
#: The server's clock, microseconds since 1970.
NOW = b"SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"

_SHARD_ROW = b"shard_id = %d AND row_type = 1 AND timer_execute_at = 0 AND timer_uuid = ''"
_UPSERT_HEAD = (
    b"INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, "
    b"timer_tags, timer_record, timer_parked_reason) VALUES "
)
# Updates the uuid's present row, whatever its key: the primary key can belong to another row only if the uuid is the same.
_UPSERT_TAIL = (
    b" ON DUPLICATE KEY UPDATE row_type = VALUES(row_type), timer_execute_at = VALUES(timer_execute_at), "
    b"timer_generation = VALUES(timer_generation), timer_namespace = VALUES(timer_namespace), "
    b"timer_id = VALUES(timer_id), timer_tags = VALUES(timer_tags), timer_record = VALUES(timer_record), "
    b"timer_parked_reason = VALUES(timer_parked_reason)"
)
_HISTORY_HEAD = (
    b"INSERT INTO history (shard_id, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, "
    b"timer_tags, timer_record, timer_status, timer_finished_at, timer_expires_at) VALUES "
)
_HISTORY_TAIL = (
    b" ON DUPLICATE KEY UPDATE timer_execute_at = VALUES(timer_execute_at), timer_namespace = VALUES(timer_namespace), "
    b"timer_id = VALUES(timer_id), timer_tags = VALUES(timer_tags), timer_record = VALUES(timer_record), "
    b"timer_status = VALUES(timer_status), timer_finished_at = VALUES(timer_finished_at), "
    b"timer_expires_at = VALUES(timer_expires_at)"
)
# With another index, which MySQL chooses for small tables, a DELETE would sort, and lock all rows that it reads, other
# shards' rows among them. The hint for MySQL (8.0.20 or newer) is a comment for MariaDB.
_ALONG_THE_KEY = b"/*+ INDEX(timers PRIMARY) */"
# MariaDB supports a hint only in the multi-table form of DELETE, in which MySQL reads the whole table if it has fewer rows
# than there are uuids, whatever the hint. The parts for MariaDB are comments for MySQL.
_UUID_DELETE = (
    b"DELETE /*+ INDEX(timers timers_by_uuid) */ /*M! timers */ FROM timers /*M! FORCE INDEX (timers_by_uuid) */ "
    b"WHERE shard_id = %d AND timer_uuid IN %b"
)
_UUID_BYTES = 16


class WriteLimits(NamedTuple):
    """`statement_bytes_max` limits a packet, even if the server accepts more. `delete_rows_max` is how many rows of a range
    one statement deletes, `undone_retries_max` how often a transaction that was rolled back for another is repeated."""

    statement_bytes_max: int
    delete_rows_max: int
    undone_retries_max: int


async def apply(
    connection: Connection, batches: Sequence[ShardBatch], edges: LeftEdges, limits: WriteLimits
) -> list[Applied]:
    """Writes the parts whose fence holds, in one transaction. No other `apply` may run for these shards at the same time."""
    parts = sorted(batches, key=lambda batch: batch.shard_id)
    known = {part.shard_id: edges.take(part) for part in parts}
    packet_bytes_max = min(limits.statement_bytes_max, connection.server.packet_bytes_max)

    def written(held: Sequence[ShardBatch]) -> tuple[list[bytes], list[list[bytes]]]:
        return (
            list(range_deletes(held, known, limits.delete_rows_max)),
            list(packets(_row_statements(held, packet_bytes_max), packet_bytes_max)),
        )

    # Prepared before anything is locked.
    whole = written(parts)

    async def work() -> Sequence[ShardBatch]:
        held = await _fence(connection, parts)
        ranges, rows = whole if len(held) == len(parts) else written(held)
        await _delete_ranges(connection, ranges, limits.delete_rows_max, packet_bytes_max)
        for packet in rows:
            await connection.run(*packet)
        return held

    held = {part.shard_id: part for part in await connection.transaction(work, limits.undone_retries_max)}
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
                b"DELETE " + _ALONG_THE_KEY + b" FROM timers WHERE shard_id = %d AND row_type = 2 AND %b "
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
    for part in parts:
        for uuids in cut([hexed(uuid) for uuid in sorted(part.deletes)]):
            yield uuid_delete(part.shard_id, uuids)
    yield from inserts(_UPSERT_HEAD, upserts, _UPSERT_TAIL, bytes_max)
    yield from inserts(_HISTORY_HEAD, history, _HISTORY_TAIL, bytes_max)


def uuid_delete(shard_id: int, uuids: Sequence[bytes]) -> bytes:
    """A DELETE of live and suspended rows by uuid."""
    return _UUID_DELETE % (shard_id, listed(uuids))


def _upsert_rows(part: ShardBatch) -> Iterator[bytes]:
    shard = part.shard_id
    # In key order, so that neighbours in the index are written together.
    for row in sorted(part.upserts):
        at, uuid, generation, namespace, timer_id, tags, record, suspended = row
        _check_lengths(row)
        yield b"(%d,%d,%b,%b,%b,%b,%b,%b,%b,%b)" % (
            shard, LIVE if suspended is None else SUSPENDED, instant(at), hexed(uuid), hexed(generation), text(namespace),
            text(timer_id), text(tags_text(tags)) if tags else b"NULL", bytes_literal(record), text_or_null(suspended),
        )  # fmt: skip


def _history_rows(part: ShardBatch) -> Iterator[bytes]:
    shard = part.shard_id
    for row in sorted(part.history):
        at, uuid, generation, namespace, timer_id, tags, record, status, finished_at, expires_at = row
        _check_lengths(row)
        yield b"(%d,%b,%b,%b,%b,%b,%b,%b,%b,%b,%b)" % (
            shard, instant(at), hexed(uuid), hexed(generation), text(namespace), text(timer_id),
            text(tags_text(tags)) if tags else b"NULL", bytes_literal(record), text(status.value), instant(finished_at),
            instant(expires_at),
        )  # fmt: skip


def _check_lengths(row: StoredRow | HistoryRow) -> None:
    # Columns of fixed length silently pad shorter values with zeros.
    if len(row.uuid) != _UUID_BYTES or len(row.generation) != GENERATION_BYTES:
        raise DefiniteFailure(
            f"timer {row.timer_id!r}: a uuid must have {_UUID_BYTES} bytes, and a generation {GENERATION_BYTES} bytes"
        )


# -- everything except batches


async def claim(
    connection: Connection,
    shard_id: int,
    expected_epoch: int,
    owner: bytes,
    presumed_dead: tuple[bytes, int] | None,
    undone_retries_max: int,
) -> int | None:
    """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. The member's row
    is locked, so that its counter can't move between the comparison and the commit."""

    async def work() -> int | None:
        await connection.run(BEGIN)
        if presumed_dead is not None and not await connection.rows(presumed_dead_row(*presumed_dead)):
            return None
        if expected_epoch == 0:
            statement = (
                b"INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner, "
                b"shard_batches) VALUES (%d, 1, 0, '', 1, %b, 0)"
            ) % (shard_id, hexed(owner))
        else:
            statement = (
                b"UPDATE timers FORCE INDEX (PRIMARY) SET shard_version = shard_version + 1, shard_owner = %b "
                b"WHERE " + _SHARD_ROW + b" AND shard_version = %b"
            ) % (hexed(owner), shard_id, instant(expected_epoch))
        (result,) = await connection.run(statement)
        return expected_epoch + 1 if result.affected else None

    try:
        return await connection.transaction(work, undone_retries_max)
    except errors.IntegrityError as error:
        if code_of(error) == DUPLICATE:
            return None
        raise


def presumed_dead_row(incarnation: bytes, counter: int) -> bytes:
    """A SELECT that finds, and locks, the member if its counter is this."""
    return b"SELECT 1 FROM members WHERE member_incarnation = %b AND member_counter = %b FOR UPDATE" % (
        hexed(incarnation),
        instant(counter),
    )


def release(shard_id: int, epoch: int, owner: bytes) -> bytes:
    """Clears the owner if epoch and owner are these."""
    return (
        b"UPDATE timers FORCE INDEX (PRIMARY) SET shard_owner = NULL WHERE "
        + _SHARD_ROW
        + b" AND shard_version = %b AND shard_owner = %b"
    ) % (
        shard_id,
        instant(epoch),
        hexed(owner),
    )


def heartbeat(member: Member) -> bytes:
    """Writes the member's row."""
    return (
        b"INSERT INTO members (member_incarnation, member_node, member_address, member_counter) VALUES (%b, %b, %b, %b) "
        b"ON DUPLICATE KEY UPDATE member_node = VALUES(member_node), member_address = VALUES(member_address), "
        b"member_counter = VALUES(member_counter)"
    ) % (hexed(member.incarnation), text(member.node), text(member.address), instant(member.counter))


def purge(now_us: int, limit: int) -> bytes:
    """The DELETE of the rows that expired first. Of nodes that purge at the same time, the later ones wait and find none."""
    return b"DELETE FROM history WHERE timer_expires_at <= %b ORDER BY timer_expires_at LIMIT %d" % (
        instant(now_us),
        limit,
    )


async def changes(connection: Connection, statement: bytes, undone_retries_max: int) -> int:
    """Runs one statement in a transaction of its own; returns how many rows it matched."""

    async def work() -> int:
        return (await connection.run(BEGIN, statement))[1].affected

    return await connection.transaction(work, undone_retries_max)
