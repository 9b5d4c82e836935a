"""Monitors as records: which there are, so that they can be listed, and to which one a ping token belongs. The monitors
themselves are rows. All functions raise StoreError.

Both kinds are hints that a crash may leave behind: a list shows the rows that they name, and a token counts only if its
monitor's row has its hash.
"""

from __future__ import annotations

import msgspec

from tocsin.administration import below, delete_all, delete_range, encoded, every, key_below
from tocsin.model.timer import UNUSABLE
from tocsin.ports.records import Record, Records
from tocsin.timers.engine.tenures import MONITORS

MONITOR_TOKENS = "monitor_token"
#: Sorts after every character of a monitor's id.
_ID_END = "\x7f"


class Place(msgspec.Struct, frozen=True):
    """Which monitor a token belongs to."""

    namespace: str
    id: str


_place_decoder = msgspec.json.Decoder(Place)


def place_of(key: str) -> Place:
    """The monitor of a key."""
    namespace, _, monitor_id = key.partition("/")
    return Place(namespace, monitor_id)


def scope_of(namespace: str, id_prefix: str = "") -> tuple[str, str]:
    """What the keys of a namespace's monitors are between, those with the prefix."""
    if not id_prefix:
        return below(namespace)
    key = key_below(namespace, id_prefix)
    # No key ends with a space, which sorts before all characters of ids.
    return key[:-1] + chr(ord(key[-1]) - 1) + _ID_END, key + _ID_END


async def add_monitor(records: Records, namespace: str, monitor_id: str, token: str) -> None:
    """Stores that there may be such a monitor, and that the token with this hash is its."""
    await records.put_record(MONITOR_TOKENS, token, encoded(Place(namespace, monitor_id)), None)
    await list_monitor(records, namespace, monitor_id)


async def list_monitor(records: Records, namespace: str, monitor_id: str) -> None:
    """Stores that there may be such a monitor."""
    await records.put_record(MONITORS, key_below(namespace, monitor_id), "{}", None)


async def monitor_of_token(records: Records, token: str) -> Place | None:
    """The monitor to which the token with this hash belonged when it was made."""
    record = await records.record(MONITOR_TOKENS, token)
    try:
        return None if record is None else _place_decoder.decode(record.value)
    except UNUSABLE:
        # Damaged: as if it were unknown.
        return None


async def delete_monitor(records: Records, namespace: str, monitor_id: str) -> None:
    """Removes the record of a monitor that is gone."""
    await records.delete_records(MONITORS, [key_below(namespace, monitor_id)])


async def delete_token(records: Records, token: str) -> None:
    """Removes the record of a token that counts no longer."""
    await records.delete_records(MONITOR_TOKENS, [token])


async def monitor_keys(records: Records, after: str, before: str, limit: int) -> list[str]:
    """The keys of the first monitors with after < key < before."""
    return [each.key for each in await records.records(MONITORS, after, before, limit=limit)]


async def delete_monitors(records: Records, namespace: str) -> None:
    """Removes all records of a namespace's monitors and tokens."""
    await delete_range(records, MONITORS, *below(namespace))
    tokens = [each.key async for each in every(records, MONITOR_TOKENS) if _is_of(each, namespace)]
    await delete_all(records, MONITOR_TOKENS, tokens)


def _is_of(record: Record, namespace: str) -> bool:
    try:
        return _place_decoder.decode(record.value).namespace == namespace
    except UNUSABLE:
        return False
