"""Conversion between rows of the port and documents.

Instants are 64-bit integers of microseconds, because BSON's dates count milliseconds. Binary values sort by their length,
then their bytes; those compared here have one length.
"""

from __future__ import annotations

from typing import Any, TypeVar

import bson
from bson import Binary, Int64
from bson.binary import UUID_SUBTYPE
from bson.datetime_ms import DatetimeMS

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import UNUSABLE, Status, damaged_record
from tocsin.ports.store import (
    GENERATION_LOST,
    SCHEDULES_SUFFIX,
    UUID_BYTES,
    FailureRow,
    FireKey,
    HistoryRow,
    RunRow,
    ShardState,
    StoredRow,
    check_lengths,
)

Document = dict[str, Any]
T = TypeVar("T")

#: What reading a damaged document raises.
_DAMAGE = (KeyError, *UNUSABLE)

#: Instants are 64-bit numbers.
_INSTANTS = range(-(2**63), 2**63)
#: The beginning of the year 1 and the end of the year 9999.
_DATE_MIN_MS, _DATE_MAX_MS = -62_135_596_800_000, 253_402_300_799_999
_STATUSES = {status.value: status for status in Status}


def shard_state(document: Document) -> ShardState | None:
    """The state of a shard; None if its document has lost the epoch. One that has lost its owner counts as released: the next
    claim raises the epoch all the same."""
    shard_id, epoch, owner = document["_id"], document.get("epoch"), document.get("owner")
    if not isinstance(shard_id, int) or not isinstance(epoch, int):
        return None
    return ShardState(shard_id, int(epoch), bytes(owner) if isinstance(owner, bytes) else None)


def uuid_binary(uuid: bytes) -> Binary:
    """A UUID as BSON's own kind, which mongosh shows as such."""
    return Binary(uuid, UUID_SUBTYPE)


def timer_id(shard_id: int, uuid: bytes) -> bytes:
    """The `_id` of a live or suspended timer: an id is unique in its shard, at any instant."""
    return shard_id.to_bytes(4, "big") + uuid


def of_timer(shard_id: int, uuid: bytes, before: bytes | None = None) -> Document:
    """The condition for a timer's finished rows, or runs, with generation < before."""
    condition: Document = {"shard": shard_id, "uuid": uuid_binary(uuid)}
    if before is not None:
        condition["generation"] = {"$lt": before}
    return condition


def stored_document(shard_id: int, row: StoredRow) -> Document:
    """The document of a live or suspended row."""
    document = {
        "_id": timer_id(shard_id, row.uuid),
        "shard": shard_id,
        "suspended": row.suspended is not None,
        **_common(row),
    }
    if row.suspended is not None:
        document["reason"] = row.suspended
    if row.namespace.endswith(SCHEDULES_SUFFIX):
        document["schedule"] = True
    return document


def history_document(shard_id: int, row: HistoryRow) -> Document:
    """The document of a finished row."""
    return {
        "shard": shard_id,
        **_common(row),
        "status": row.status.value,
        "finished_at": _int64(row.finished_at),
        **_expiry(row),
    }


def run_document(shard_id: int, row: RunRow) -> Document:
    """The document of a run."""
    check_lengths(row)
    return {
        "shard": shard_id,
        "uuid": uuid_binary(row.uuid),
        "generation": row.generation,
        "record": row.record,
        **_expiry(row),
    }


def failure_document(shard_id: int, row: FailureRow) -> Document:
    """The document of a failure."""
    check_lengths(row)
    return {
        "shard": shard_id,
        "at": _int64(row.failed_at),
        "uuid": uuid_binary(row.uuid),
        "generation": row.generation,
        "namespace": row.namespace,
        "timer_id": row.timer_id,
        "cause": row.failure,
        "execute_at": _int64(row.execute_at),
        **_expiry(row),
    }


def _common(row: StoredRow | HistoryRow) -> Document:
    check_lengths(row)
    return {
        "at": _int64(row.execute_at),
        "uuid": uuid_binary(row.uuid),
        "generation": row.generation,
        "namespace": row.namespace,
        "timer_id": row.timer_id,
        "tags": list(row.tags),
        "record": row.record,
    }


def _expiry(row: HistoryRow | RunRow | FailureRow) -> Document:
    return {"expires_at": _int64(row.expires_at), "expires": date_after(row.expires_at)}


def date_after(instant_us: int) -> DatetimeMS:
    """The first millisecond that is not before the instant, within the years that people and tools can read."""
    return DatetimeMS(min(max(-(-instant_us // 1_000), _DATE_MIN_MS), _DATE_MAX_MS))


def _int64(instant_us: int) -> Int64:
    if instant_us not in _INSTANTS:
        raise DefiniteFailure(f"the instant {instant_us} is out of range")
    return Int64(instant_us)


def stored_row(document: Document) -> StoredRow:
    """The row of a live or suspended timer's document; of a damaged one, what is left."""
    try:
        return StoredRow(*_read(document), document.get("reason"))
    except _DAMAGE as error:
        # Queries for a page ask for `suspended`.
        reason = (_left(document, "reason", str) or "damaged") if document.get("suspended") else None
        return StoredRow(*_damaged(document, error, document["_id"][-UUID_BYTES:]), reason)


def history_row(document: Document) -> HistoryRow:
    """The row of a finished timer's document; of a damaged one, what is left."""
    try:
        status = _STATUSES[document["status"]]
        return HistoryRow(*_read(document), status, int(document["finished_at"]), int(document["expires_at"]))
    except _DAMAGE as error:
        common = _damaged(document, error, _left(document, "uuid", bytes) or b"")
        return HistoryRow(*common, _STATUSES.get(_left(document, "status", str) or "", Status.FAILED), common[0], 0)


def run_row(document: Document) -> RunRow:
    """The row of a run's document; of a damaged one, what is left."""
    try:
        uuid, record = bytes(document["uuid"]), bytes(document["record"])
        return RunRow(uuid, bytes(document["generation"]), record, int(document["expires_at"]))
    except _DAMAGE as error:
        _, uuid, generation, *_, record = _damaged(document, error, _left(document, "uuid", bytes) or b"")
        return RunRow(uuid, generation, record, 0)


def failure_row(document: Document) -> FailureRow:
    """The row of a failure's document; of a damaged one, what is left."""
    at, uuid = key_of(document)
    generation = bytes(_left(document, "generation", bytes) or GENERATION_LOST)
    try:
        names = (document["namespace"], document["timer_id"], document["cause"])
        return FailureRow(uuid, generation, *names, at, int(document["execute_at"]), int(document["expires_at"]))
    except _DAMAGE:
        return FailureRow.damaged((at, uuid, generation))


def _read(document: Document) -> tuple[int, bytes, bytes, str, str, tuple[str, ...], bytes]:
    return (
        int(document["at"]),
        bytes(document["uuid"]),
        bytes(document["generation"]),
        document["namespace"],
        document["timer_id"],
        tuple(document["tags"]),
        bytes(document["record"]),
    )


def _damaged(
    document: Document, error: Exception, uuid: bytes
) -> tuple[int, bytes, bytes, str, str, tuple[str, ...], bytes]:
    tags = _left(document, "tags", list) or ()
    return (
        int(_left(document, "at", int) or 0),
        bytes(uuid),
        bytes(_left(document, "generation", bytes) or GENERATION_LOST),
        _left(document, "namespace", str) or "",
        _left(document, "timer_id", str) or "",
        tuple(tag for tag in tags if isinstance(tag, str)),
        damaged_record(error, _left(document, "record", bytes) or bson.encode(document)),
    )


def _left(document: Document, name: str, kind: type[T]) -> T | None:
    value = document.get(name)
    return value if isinstance(value, kind) else None


def key_of(document: Document) -> FireKey:
    """The key in a document or an index; an instant of 0 and no uuid for a damaged one."""
    return int(_left(document, "at", int) or 0), bytes(_left(document, "uuid", bytes) or b"")
