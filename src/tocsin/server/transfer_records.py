"""The records of a store as a transfer copies and compares them."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from tocsin.administration import (
    API_KEYS,
    AUDIT,
    CALENDARS,
    CREDENTIALS,
    DESTINATION_PAUSES,
    FLOWS,
    KEY_USES,
    NAMESPACES,
    SEAL_KEYS,
    SECRETS,
    SIGN_INS,
    SIGNING_KEYS,
    TENANT_LABELS,
    delete_all,
    encoded,
    every,
)
from tocsin.model.namespace import Namespace
from tocsin.model.timer import UNUSABLE
from tocsin.ports.records import Record, Records
from tocsin.server.transfer_mark import TransferRefused
from tocsin.server.transfer_rows import spread, with_ordered_flows
from tocsin.statistics.records import MINUTES, OUTAGES, TEN_MINUTES
from tocsin.timers.engine.tenures import MONITORS, TENURES, Tenure
from tocsin.timers.jobs import JOBS
from tocsin.timers.monitor_records import MONITOR_TOKENS

#: Every kind of record but that of transfers.
RECORD_KINDS = (
    NAMESPACES, FLOWS, CALENDARS, CREDENTIALS, SIGNING_KEYS, DESTINATION_PAUSES, API_KEYS, KEY_USES, TENANT_LABELS,
    SECRETS, SEAL_KEYS, SIGN_INS, AUDIT, JOBS, MINUTES, TEN_MINUTES, OUTAGES, MONITORS, MONITOR_TOKENS, TENURES,
)  # fmt: skip
#: Kinds whose versions clients see and name in conditions: they stay as they are. The others begin at 1.
_VERSIONED = (NAMESPACES, FLOWS, CALENDARS, CREDENTIALS)

_namespace_decoder, _tenure_decoder = msgspec.json.Decoder(Namespace), msgspec.json.Decoder(Tenure)


async def copy_records(source: Records, source_shards: int, target: Records, target_shards: int) -> None:
    """Makes the target's records those of the source. It can be repeated."""
    ordered = await with_ordered_flows(source)
    for kind in RECORD_KINDS:
        stored = {record.key: record async for record in every(target, kind)}
        async for found in every(source, kind):
            record = _moved(kind, found, source_shards, target_shards, ordered)
            former = stored.pop(record.key, None)
            await _put(target, kind, record, former)
        await delete_all(target, kind, [*stored])


async def differing_records(source: Records, source_shards: int, target: Records, target_shards: int) -> list[str]:
    """The kinds and keys of records of which the target has no copy."""
    different, ordered = [], await with_ordered_flows(source)
    for kind in RECORD_KINDS:
        stored = {record.key: record async for record in every(target, kind)}
        async for found in every(source, kind):
            record = _moved(kind, found, source_shards, target_shards, ordered)
            copy = stored.pop(record.key, None)
            if copy is None or copy.value != record.value or (kind in _VERSIONED and copy.version != record.version):
                different.append(f"{kind}/{record.key}")
        different += [f"{kind}/{key}" for key in stored]
    return different


def _moved(kind: str, record: Record, source_shards: int, target_shards: int, ordered: Container[str]) -> Record:
    """The record as the target has it: a namespace has its timers in as many shards as belong to it there, and what is known
    of a node's work and of outages concerns the shards of there."""
    if source_shards == target_shards:
        return record
    if kind == NAMESPACES:
        namespace = _namespace_decoder.decode(record.value)
        return record._replace(value=encoded(spread(namespace, source_shards, target_shards, ordered)))
    if kind == TENURES:
        try:
            return record._replace(value=encoded(_tenure_decoder.decode(record.value).spread(target_shards)))
        except UNUSABLE:
            # Damaged: no node takes anything from it, neither here nor there.
            return record
    return record


async def _put(target: Records, kind: str, record: Record, former: Record | None) -> None:
    """Writes the record, as often as it takes until it has its version."""
    version = 0 if former is None else former.version
    wanted = max(record.version, 1) if kind in _VERSIONED else 1
    done = former is not None and former.value == record.value and version >= wanted
    while not done:
        if not await target.put_record(kind, record.key, record.value, version or None):
            raise TransferRefused(
                f"--to: somebody has changed the record {kind}/{record.key} of the target; start over"
            )
        version += 1
        done = version >= wanted
