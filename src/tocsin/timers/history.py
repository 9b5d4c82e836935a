"""A timer's runs as clients see them, and the pages in which they are listed."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import NamedTuple

import msgspec

from tocsin.model.errors import FieldError, InvalidInput, RecordUndecodable
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.run import FAILED_RUNS, Run, RunStatus, decode_run, run_of
from tocsin.model.timer import LoggedAttempt, decode_record
from tocsin.ports.store import PAGE_BYTES_MAX, HistoryRow, RunRow, Store, StoredRow

#: Reads of the ends of runs: those with a generation less than the given one, at most that many, and that many bytes of
#: records. Only an empty result is the end.
ReadEnds = Callable[[bytes | None, int, int], Awaitable[list[HistoryRow | RunRow]]]
#: Reads the timer's live row.
ReadLive = Callable[[], Awaitable[StoredRow | None]]

#: Rows of one read, at most.
_READ_ROWS_MAX = 200
#: Bytes of records decoded before other requests get their turn.
_BYTES_PER_TURN = 1024 * 1024
#: Reads of the live row for one page. Each one beyond the first means that a run ended during the call.
_LIVE_READS_MAX = 5
_CURSOR = struct.Struct(">32sq?q")
#: The parts of a generation that name a firing. Records of early releases lack the name.
_EPOCH, _SEQUENCE = slice(0, 8), slice(-8, None)


class RunPage(NamedTuple):
    """Runs, newest first, and the cursor of the next page if there is one."""

    runs: list[Run]
    cursor: str | None


class FailedRun(NamedTuple):
    """A run that failed or expired: the generation of its row, and the name of its firing."""

    generation: bytes
    firing: str
    status: RunStatus


class _Place(NamedTuple):
    """Where a page ended: the generation of the last row that it accounts for, and the identity of its last run."""

    generation: bytes
    identity: tuple[int, int | None]


async def runs_of(store: Store, shard_id: int, uuid: bytes, limit: int, cursor: str | None) -> RunPage:
    """The requested page of a timer's or schedule's runs, with the same errors as `runs_page`."""

    async def live() -> StoredRow | None:
        found = (await store.fetch(shard_id, [uuid])).get(uuid)
        return found.live if found else None

    return await runs_page(live, partial(store.runs, shard_id, uuid), limit, cursor)


async def runs_page(read_live: ReadLive, read_ends: ReadEnds, limit: int, cursor: str | None) -> RunPage:
    """The requested page. Its first run is the current one, if there is one. Of a run that can't be read, its only attempt
    states the reason. Rows of finished timers have payloads: once PAGE_BYTES_MAX of records are read, the page ends, short
    or even empty, with a cursor. Raises InvalidInput for a bad cursor."""
    after = read_cursor(cursor)
    first = None
    if after is None:
        for _ in range(_LIVE_READS_MAX):
            live = await read_live()
            newest = await read_ends(None, 1, 1)
            if live is None or not newest or newest[0].generation < live.generation:
                break
            # The run ended between the two reads.
        else:
            live = None
        first = None if live is None else (live.generation, _current(live))
    found = [] if first is None else [first]
    before = after.generation if after is not None else None
    identity = after.identity if after is not None else None
    if first is not None:
        before, identity = first[0], first[1].identity
    bytes_left, decoded = PAGE_BYTES_MAX, 0
    while len(found) <= limit and bytes_left > 0:
        rows = await read_ends(before, min(limit + 1 - len(found), _READ_ROWS_MAX), bytes_left)
        if not rows:
            return RunPage([run for _, run in found], None)
        for row in rows:
            run = _ended(row)
            before = row.generation
            bytes_left -= len(row.record)
            decoded += len(row.record)
            # Older states of one run follow its last one.
            if run.identity != identity or run.first_attempt_at is None:
                found.append((row.generation, run))
                identity = run.identity
            if decoded >= _BYTES_PER_TURN:
                decoded = 0
                await asyncio.sleep(0)
    page = found[:limit]
    if len(found) > limit:
        before, identity = page[-1][0], page[-1][1].identity
    assert before is not None
    assert identity is not None
    return RunPage([run for _, run in page], _write_cursor(_Place(before, identity)))


async def latest_ended(store: Store, shard_id: int, uuid: bytes, limit: int, bytes_max: int) -> list[Run]:
    """The runs that ended last, newest first, from one read: at most `limit`, and fewer once their records have `bytes_max`
    bytes."""
    found: list[Run] = []
    for row in await store.runs(shard_id, uuid, None, limit, bytes_max):
        run = _ended(row)
        if not found or run.identity != found[-1].identity or run.first_attempt_at is None:
            found.append(run)
    return found


async def failed_runs(
    store: Store, shard_id: int, uuid: bytes, instants: Collection[int], rows_max: int
) -> dict[int, FailedRun]:
    """Of the latest run of each instant, those that failed or expired, by instant; from the newest `rows_max` rows."""
    latest: dict[int, FailedRun] = {}
    before = None
    while rows_max > 0 and len(latest) < len(instants):
        rows = await store.runs(shard_id, uuid, before, min(rows_max, _READ_ROWS_MAX))
        if not rows:
            break
        for row in rows:
            before, run = row.generation, _ended(row)
            if run.execute_at in instants and run.status is not RunStatus.MISSED:
                latest.setdefault(run.execute_at, FailedRun(before, run.firing, run.status))
        rows_max -= len(rows)
    return {at: run for at, run in latest.items() if run.status in FAILED_RUNS}


def _current(live: StoredRow) -> Run:
    try:
        return _named(run_of(decode_record(live.record), RunStatus.PENDING), live.generation)
    except RecordUndecodable:
        # As the timer itself is shown.
        return _named(Run(live.execute_at, RunStatus.PENDING), live.generation)


def _ended(row: HistoryRow | RunRow) -> Run:
    try:
        if isinstance(row, RunRow):
            return _named(decode_run(row.record), row.generation)
        return _named(run_of(decode_record(row.record), row.status), row.generation)
    except RecordUndecodable as error:
        # Of a run's row nothing else is left.
        at, status = (row.execute_at, row.status) if isinstance(row, HistoryRow) else (0, RunStatus.FAILED)
        reason = LoggedAttempt(at, 0, error=f"what is stored of this run can't be read: {error}")
        return _named(Run(at, RunStatus(status), attempts=(reason,)), row.generation)


def _named(run: Run, generation: bytes) -> Run:
    if run.firing:
        return run
    epoch, sequence = (int.from_bytes(generation[part], "big") for part in (_EPOCH, _SEQUENCE))
    return msgspec.structs.replace(run, firing=f"{epoch:x}-{sequence:x}")


def _write_cursor(place: _Place) -> str:
    execute_at, first = place.identity
    packed = _CURSOR.pack(place.generation, execute_at, first is not None, first or 0)
    return to_opaque(packed)


def read_cursor(text: str | None) -> _Place | None:
    """The place of a page's end. Raises InvalidInput for a text that no page had."""
    if text is None:
        return None
    try:
        generation, execute_at, attempted, first = _CURSOR.unpack(from_opaque(text))
    except (struct.error, ValueError):
        raise InvalidInput(
            FieldError(
                "cursor", "is not a cursor that a history call returned; leave it out to start at the newest run"
            )
        ) from None
    return _Place(generation, (execute_at, first if attempted else None))
