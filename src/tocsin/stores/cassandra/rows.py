"""Conversion between rows of the port and the values of the table. A value is one column, so that writing a row replaces all
of it."""

from __future__ import annotations

import time

import msgspec

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import Status, damaged_record
from tocsin.ports.store import GENERATION_LOST, FailureRow, HistoryRow, Member, RunRow, StoredRow
from tocsin.stores.cassandra.keys import generation_of, is_timer, uuid_of
from tocsin.stores.orders import SUSPENDED, failure_place_of, fire_key_of

#: Cassandra's limit of a time to live, and the instant, in seconds since 1970, after which release 4 expires nothing.
_TTL_MAX_S = 20 * 365 * 24 * 60 * 60
_EXPIRY_MAX_S = 2**31 - 2

_encode = msgspec.msgpack.Encoder().encode
_STATUSES = {status.value: status for status in Status}

#: What decoding a damaged value raises. A value can be missing.
DAMAGE = (msgspec.MsgspecError, ValueError, TypeError)


class _Timer(msgspec.Struct, array_like=True, gc=False):
    at: int
    generation: bytes
    namespace: str
    timer_id: str
    tags: tuple[str, ...]
    record: bytes
    suspended: str | None


class _Finished(msgspec.Struct, array_like=True, gc=False):
    at: int
    namespace: str
    timer_id: str
    tags: tuple[str, ...]
    record: bytes
    status: str
    finished_at: int
    expires_at: int


class _Run(msgspec.Struct, array_like=True, gc=False):
    record: bytes
    expires_at: int


class _Failure(msgspec.Struct, array_like=True, gc=False):
    namespace: str
    timer_id: str
    failure: str
    execute_at: int
    expires_at: int


class _Member(msgspec.Struct, array_like=True, gc=False):
    node: str
    address: str


class ScheduleEntry(msgspec.Struct, array_like=True, gc=False):
    """The value of a schedule's entry: which row it leads to, and which state of it."""

    uuid: bytes
    generation: bytes


class Entry(msgspec.Struct, array_like=True, gc=False):
    """The value of an entry of an order: what lists filter by, and the size of the record to which it leads."""

    generation: bytes
    namespace: str
    timer_id: str
    tags: tuple[str, ...]
    status: str = Status.PENDING.value
    record_bytes: int = 0


_timer = msgspec.msgpack.Decoder(_Timer)
_finished = msgspec.msgpack.Decoder(_Finished)
_run = msgspec.msgpack.Decoder(_Run)
_failure = msgspec.msgpack.Decoder(_Failure)
_entry = msgspec.msgpack.Decoder(Entry)
_schedule = msgspec.msgpack.Decoder(ScheduleEntry)
_member = msgspec.msgpack.Decoder(_Member)


def stored_value(row: StoredRow) -> bytes:
    """The value of a live or suspended row."""
    return _encode(
        _Timer(row.execute_at, row.generation, row.namespace, row.timer_id, row.tags, row.record, row.suspended)
    )


def history_value(row: HistoryRow) -> bytes:
    """The value of a finished row."""
    return _encode(
        _Finished(
            row.execute_at, row.namespace, row.timer_id, row.tags, row.record, row.status.value, row.finished_at,
            row.expires_at,
        )
    )  # fmt: skip


def run_value(row: RunRow) -> bytes:
    """The value of a run."""
    return _encode(_Run(row.record, row.expires_at))


def entry_value(row: StoredRow | HistoryRow) -> bytes:
    """The value of the row's entry."""
    status = row.status if isinstance(row, HistoryRow) else Status.PENDING
    return _encode(Entry(row.generation, row.namespace, row.timer_id, row.tags, status.value, len(row.record)))


def entry_of(value: bytes) -> Entry | None:
    """Decodes what `entry_value` wrote; None if it is damaged."""
    try:
        return _entry.decode(value)
    except DAMAGE:
        return None


def schedule_value(row: StoredRow) -> bytes:
    """The value of a schedule's entry."""
    return _encode(ScheduleEntry(row.uuid, row.generation))


def schedule_entry_of(value: bytes) -> ScheduleEntry | None:
    """Decodes what `schedule_value` wrote; None if it is damaged."""
    try:
        return _schedule.decode(value)
    except DAMAGE:
        return None


def member_value(member: Member) -> bytes:
    """The value of a member's row, except its counter."""
    return _encode(_Member(member.node, member.address))


def member_of(incarnation: bytes, value: bytes, counter: int) -> Member:
    """The member of a row."""
    try:
        decoded = _member.decode(value)
    except DAMAGE:
        return Member(incarnation, "", "", counter or 0)
    return Member(incarnation, decoded.node, decoded.address, counter)


def row_of(key: bytes, value: bytes) -> StoredRow | HistoryRow:
    """The timer of a row of "T". Raises one of DAMAGE."""
    if is_timer(key):
        live = _timer.decode(value)
        return StoredRow(
            live.at, uuid_of(key), live.generation, live.namespace, live.timer_id, live.tags, live.record,
            live.suspended,
        )  # fmt: skip
    ended = _finished.decode(value)
    return HistoryRow(
        ended.at, uuid_of(key), generation_of(key), ended.namespace, ended.timer_id, ended.tags, ended.record,
        Status(ended.status), ended.finished_at, ended.expires_at,
    )  # fmt: skip


def row_or_damaged(key: bytes, value: bytes | None) -> StoredRow | HistoryRow:
    """Like `row_of`; a damaged row as far as its key has it."""
    try:
        return row_of(key, value or b"")
    except DAMAGE as error:
        return damaged_row(key, value, error)


def damaged_row(
    key: bytes, value: bytes | None, error: Exception, order: bytes = b"", entry: Entry | None = None
) -> StoredRow | HistoryRow:
    """The row of a damaged value. `order` is the key of an entry that leads to it, and `entry` that entry's value, which
    repeat what the row's own key lacks."""
    at, uuid, record = fire_key_of(order)[0] if order else 0, uuid_of(key), damaged_record(error, value or b"")
    names = ("", "", ()) if entry is None else (entry.namespace, entry.timer_id, entry.tags)
    if is_timer(key):
        generation = GENERATION_LOST if entry is None else entry.generation
        return StoredRow(at, uuid, generation, *names, record, "damaged" if order.startswith(SUSPENDED) else None)
    status = Status.FAILED if entry is None else _STATUSES.get(entry.status, Status.FAILED)
    return HistoryRow(at, uuid, generation_of(key), *names, record, status, at, 0)


def run_row_of(key: bytes, value: bytes) -> RunRow:
    """The run of a row of "R"; a damaged one as far as its key has it."""
    try:
        run = _run.decode(value)
    except DAMAGE as error:
        return RunRow(uuid_of(key), generation_of(key), damaged_record(error, value or b""), 0)
    return RunRow(uuid_of(key), generation_of(key), run.record, run.expires_at)


def failure_value(row: FailureRow) -> bytes:
    """The value of a failure."""
    return _encode(_Failure(row.namespace, row.timer_id, row.failure, row.execute_at, row.expires_at))


def failure_row_of(key: bytes, value: bytes | None) -> FailureRow:
    """The failure of a row of "E"; a damaged one as far as its key has it."""
    failed_at, uuid, generation = place = failure_place_of(key)
    try:
        of = _failure.decode(value or b"")
    except DAMAGE:
        return FailureRow.damaged(place)
    return FailureRow(uuid, generation, of.namespace, of.timer_id, of.failure, failed_at, of.execute_at, of.expires_at)


def ttl_s(row: HistoryRow | RunRow | FailureRow, at_least_s: int) -> int:
    """Seconds until the row expires, by this machine's clock; 0 for never. Raises DefiniteFailure for an instant out of
    range."""
    if not -(2**63) <= row.expires_at < 2**63:
        raise DefiniteFailure(f"{row.uuid.hex()}: the end of its retention is out of range")
    now_s = time.time()
    left_s = max(at_least_s, int(-(-row.expires_at // 1_000_000) - now_s))
    return left_s if left_s <= min(_TTL_MAX_S, _EXPIRY_MAX_S - now_s) else 0
