"""What a transfer leaves in both stores: the refusal to start a server where timers would be lost, or fire twice.

Each of the two stores has one record. That of the target is written before anything else is, and removed when the transfer is
complete. That of the source is written when everything is in the target, and stays.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tocsin.administration import encoded
from tocsin.model.errors import StoreCorrupted, TocsinError
from tocsin.model.instants import format_instant
from tocsin.model.timer import UNUSABLE
from tocsin.ports.records import Record, Records

#: The record's kind, and its only key.
TRANSFER, _KEY = "transfer", "state"


class TransferRefused(TocsinError):
    """The transfer can't be made, or the store is part of one, so that a server must not use it. Nothing fires twice."""

    code = "TRANSFER_REFUSED"


class TransferMark(msgspec.Struct, frozen=True, rename="camel"):
    """The part that a store has in a transfer. `transfer` is the transfer's id in hexadecimal digits, by which it owns the
    shards of both stores; `other` is the other store, without credentials; `at` is when it began, or was complete.

    Of a target: `claimed` is whether every shard of the source was claimed, and `copied` are the shards of the source that
    are in the target. `version` is the record's."""

    role: Literal["source", "target"]
    transfer: str
    other: str
    at: int
    claimed: bool = False
    copied: tuple[int, ...] = ()
    version: int = 0

    @property
    def owner(self) -> bytes:
        """The owner of the shards."""
        return bytes.fromhex(self.transfer)


_decoder = msgspec.json.Decoder(TransferMark)


async def read_mark(records: Records) -> TransferMark | None:
    """The part that the store has in a transfer. Raises StoreCorrupted if it can't be read."""
    record = await records.record(TRANSFER, _KEY)
    return None if record is None else _decoded(record)


def _decoded(record: Record) -> TransferMark:
    try:
        mark = _decoder.decode(record.value)
    except UNUSABLE as error:
        raise StoreCorrupted(
            f"the record {TRANSFER}/{_KEY} can't be read ({error}): this store is part of a transfer; restore a backup"
        ) from error
    return msgspec.structs.replace(mark, version=record.version)


async def put_mark(records: Records, mark: TransferMark) -> TransferMark:
    """Stores the mark in place of the one with its version, which is 0 for the first. Raises TransferRefused if another
    transfer has written one."""
    value = encoded(msgspec.structs.replace(mark, version=0))
    if not await records.put_record(TRANSFER, _KEY, value, mark.version or None):
        raise TransferRefused(f"another transfer uses the same stores ({mark.other}); let it end")
    return msgspec.structs.replace(mark, version=mark.version + 1)


async def remove_mark(records: Records) -> None:
    """Removes the mark."""
    await records.delete_records(TRANSFER, [_KEY])


async def refuse_transferred(records: Records) -> None:
    """Raises TransferRefused if neither a server nor an offline command may use the store because of a transfer."""
    mark = await read_mark(records)
    if mark is None:
        return
    if mark.role == "source":
        raise TransferRefused(
            f"store: its timers were transferred to {mark.other} at {format_instant(mark.at)} and fire there; use that store"
        )
    raise TransferRefused(
        f"store: a transfer from {mark.other} to this store is not complete, so that timers are missing; run the same "
        "`tocsin transfer` again, which goes on where it stopped, or start over with an empty store"
    )
