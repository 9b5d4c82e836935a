"""What a transfer leaves in both stores: the refusal to start a server where timers would be lost, or fire twice.

Each of the two stores has one record. That of the target is written before anything else is, and removed when the transfer
is complete. That of the source is written when everything is in the target, and stays. Of a transfer under traffic the source
has one from the beginning: it asks the servers to log what they change, and then to pause.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from tocsin.administration import encoded
from tocsin.model.errors import StoreCorrupted, TocsinError
from tocsin.model.instants import format_instant
from tocsin.model.timer import UNUSABLE
from tocsin.ports.records import Record, Records

#: The record's kind, and its key.
TRANSFER, TRANSFER_KEY = "transfer", "state"
#: How long paused servers wait for a transfer that shows no sign of life. Then they go on with the source.
PATIENCE_S = 60.0


class TransferRefused(TocsinError):
    """The transfer can't be made, or the store is part of one, so that a server must not use it. Nothing fires twice."""

    code = "TRANSFER_REFUSED"


class TransferPending(TocsinError):
    """The store can't be used for a moment, because a transfer is about to switch over: the server waits."""

    code = "TRANSFER_PENDING"


class TransferMark(msgspec.Struct, frozen=True, rename="camel"):
    """The part that a store has in a transfer. `transfer` is the transfer's id in hexadecimal digits, by which it owns the
    shards of both stores; `other` is the other store, without credentials; `at` is when it began, or was complete.

    Of a source: while the servers run, they log what they change (`copying`); then they are paused (`paused`); at the end
    its timers are in the target (`moved`). Of a target: `online` is whether servers of the source may run meanwhile;
    `claimed`, whether every shard of the source was claimed, while none did; `copied` are the shards of the source that are
    in the target, and `place` is how far the next one is (`transfer_rows.rows_from`), noted for the first time before any row
    is written; `ordered` are the namespaces with ordered flows when it began, which decides where rows belong. `version` is
    the record's."""

    role: Literal["source", "target"]
    transfer: str
    other: str
    at: int
    phase: Literal["copying", "paused", "moved"] = "moved"
    online: bool = False
    claimed: bool = False
    copied: tuple[int, ...] = ()
    place: str = ""
    ordered: tuple[str, ...] = ()
    version: int = 0

    @property
    def owner(self) -> bytes:
        """The owner of the shards."""
        return bytes.fromhex(self.transfer)


_decoder = msgspec.json.Decoder(TransferMark)


async def read_mark(records: Records) -> TransferMark | None:
    """The part that the store has in a transfer. Raises StoreCorrupted if it can't be read."""
    record = await records.record(TRANSFER, TRANSFER_KEY)
    return None if record is None else _decoded(record)


def _decoded(record: Record) -> TransferMark:
    try:
        mark = _decoder.decode(record.value)
    except UNUSABLE as error:
        raise StoreCorrupted(
            f"the record {TRANSFER}/{TRANSFER_KEY} can't be read ({error}): this store is part of a transfer; restore a "
            "backup"
        ) from error
    return msgspec.structs.replace(mark, version=record.version)


def under_way(value: str | None) -> TransferMark | None:
    """The mark in a record with this value if it asks servers of a source to log what they change, or to pause."""
    try:
        mark = None if value is None else _decoder.decode(value)
    except UNUSABLE:
        return None
    return mark if mark is not None and mark.role == "source" and mark.phase != "moved" else None


async def put_mark(records: Records, mark: TransferMark) -> TransferMark:
    """Stores the mark in place of the one with its version, which is 0 for the first. Raises TransferRefused if another
    transfer has written one."""
    value = encoded(msgspec.structs.replace(mark, version=0))
    if not await records.put_record(TRANSFER, TRANSFER_KEY, value, mark.version or None):
        raise TransferRefused(f"another transfer uses the same stores ({mark.other}); let it end")
    return msgspec.structs.replace(mark, version=mark.version + 1)


async def remove_mark(records: Records) -> None:
    """Removes the mark."""
    await records.delete_records(TRANSFER, [TRANSFER_KEY])


async def refuse_transferred(records: Records) -> None:
    """Raises TransferRefused if neither a server nor an offline command may use the store because of a transfer, and
    TransferPending if a server may have to wait only."""
    _refuse(await read_mark(records))


def _refuse(mark: TransferMark | None) -> None:
    if mark is None or (mark.role == "source" and mark.phase == "copying"):
        return
    if mark.role == "source" and mark.phase == "paused":
        raise TransferPending(f"store: a transfer to {mark.other} is about to switch over; servers wait until it has")
    if mark.role == "source":
        raise TransferRefused(
            f"store: its timers were transferred to {mark.other} at {format_instant(mark.at)} and fire there; use that store"
        )
    if mark.online:
        raise TransferPending(
            f"store: a transfer from {mark.other} to this store is not complete; servers wait until it is. If it was "
            "interrupted, run the same `tocsin transfer` again"
        )
    raise TransferRefused(
        f"store: a transfer from {mark.other} to this store is not complete, so that timers are missing; run the same "
        "`tocsin transfer` again, which goes on where it stopped, or start over with an empty store"
    )


class Patience:
    """How long a server waits for a transfer that has paused it: until PATIENCE_S have passed without a change of the mark.
    Then the server takes the pause back, by the same record by which the transfer would switch over, so that only one of them
    can. `monotonic_s` is a clock that is never set."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._version, self._since_s = 0, 0.0

    async def refuse_transferred(self, records: Records) -> None:
        """Like the function of this name, of which it may take the reason away."""
        mark, now_s = await read_mark(records), self._monotonic_s()
        if mark is None or mark.phase != "paused":
            return _refuse(mark)
        if mark.version != self._version:
            self._version, self._since_s = mark.version, now_s
        if now_s - self._since_s < PATIENCE_S:
            return _refuse(mark)
        try:
            await put_mark(records, msgspec.structs.replace(mark, phase="copying"))
        except TransferRefused:
            return _refuse(mark)
