"""Conversion between rows of the port and items of the table.

Attribute names have one letter, because they count towards the size of each item: `g` generation, `n` namespace, `i` id,
`t` tags, `r` record, `w` reason of suspension; of finished timers also `z` status, `f` finished at, and `ttl`, the time to
live in seconds since 1970. A run has `r`, `e` and `ttl`; a failure, besides `n` and `i`, `c` cause and
`x` the instant of the run. Only the live row of a schedule has an `e` that is no expiry. Where DynamoDB alone removes what
has expired, `y` stands for `e`, so that the index by expiry has no entry.
"""

from __future__ import annotations

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import Status, damaged_record
from tocsin.ports.store import (
    GENERATION_LOST,
    SCHEDULES_SUFFIX,
    UUID_BYTES,
    FailureRow,
    HistoryRow,
    RunRow,
    StoredRow,
    check_lengths,
)
from tocsin.stores.dynamodb.address import ITEM_BYTES_MAX
from tocsin.stores.dynamodb.keys import (
    PROJECTED,
    Item,
    failure_key,
    generation_of,
    generation_of_run,
    history_key,
    is_timer,
    run_key,
    schedule_order,
    timer_key,
    uuid_of,
)
from tocsin.stores.orders import (
    FAILED,
    FINISHED,
    LIVE,
    SUSPENDED,
    failure_place_of,
    instant_bytes,
    instant_of,
    order_key,
)

_STATUSES = {status.value: status for status in Status}
#: What reading a damaged item raises.
_DAMAGE = (KeyError, ValueError, TypeError)
#: Size of an item besides its attributes, rounded up.
_ITEM_OVERHEAD_BYTES = 100
#: The attributes in an item's entries in the indexes.
_ENTRIES: tuple[tuple[str, ...], ...] = (("p", "s", "o", *PROJECTED), ("p", "s", "e"))


def stored_item(shard_id: int, row: StoredRow) -> Item:
    """The item of a live or suspended row. Raises DefiniteFailure if the row exceeds a limit."""
    kind = LIVE if row.suspended is None else SUSPENDED
    item = {**timer_key(shard_id, row.uuid), "o": {"B": _order(kind, row)}, "g": {"B": row.generation}, **_common(row)}
    if row.suspended is not None:
        item["w"] = {"S": row.suspended}
    if row.namespace.endswith(SCHEDULES_SUFFIX):
        item["e"] = {"B": schedule_order(row.namespace, row.timer_id)}
    return _checked(item, row)


def history_item(shard_id: int, row: HistoryRow, *, indexed: bool = True) -> Item:
    """The item of a finished row; `indexed`: the index by expiry has it. Raises DefiniteFailure if the row exceeds a
    limit."""
    item = {
        **history_key(shard_id, row.uuid, row.generation),
        "o": {"B": _order(FINISHED, row, row.generation)},
        "z": {"S": row.status.value},
        "f": {"N": str(row.finished_at)},
        **_expiry(row, indexed),
        **_common(row),
    }
    return _checked(item, row)


def run_item(shard_id: int, row: RunRow, *, indexed: bool = True) -> Item:
    """The item of a run, likewise."""
    check_lengths(row)
    item = {**run_key(shard_id, row.uuid, row.generation), "r": {"B": row.record}, **_expiry(row, indexed)}
    return _checked(item, row)


def failure_item(shard_id: int, row: FailureRow, *, indexed: bool = True) -> Item:
    """The item of a failure, likewise. Raises DefiniteFailure if the row exceeds a limit."""
    check_lengths(row)
    try:
        order = order_key(FAILED, *row.place)
    except OverflowError:
        raise DefiniteFailure(f"{row.timer_id!r}: the instant {row.failed_at} is out of range") from None
    item: Item = {
        **failure_key(shard_id, row.uuid, row.generation),
        "o": {"B": order},
        "n": {"S": row.namespace},
        "i": {"S": row.timer_id},
        "c": {"S": row.failure},
        "x": {"N": str(row.execute_at)},
        **_expiry(row, indexed),
    }
    return item


def failure_row_of(item: Item) -> FailureRow:
    """The row of a failure's item; a damaged one as far as it is left."""
    failed_at, uuid, generation = place = failure_place_of(bytes(item["o"]["B"]))
    try:
        names = (item["n"]["S"], item["i"]["S"], item["c"]["S"])
        instants = (failed_at, int(item["x"]["N"]), _expires_at(item))
        return FailureRow(uuid, generation, *names, *instants)
    except _DAMAGE:
        return FailureRow.damaged(place)


def _expiry(row: HistoryRow | RunRow | FailureRow, indexed: bool) -> Item:
    try:
        expiry = instant_bytes(row.expires_at)
    except OverflowError:
        raise DefiniteFailure(f"{row.uuid.hex()}: the end of its retention is out of range") from None
    return {"e" if indexed else "y": {"B": expiry}, "ttl": {"N": str(-(-row.expires_at // 1_000_000))}}


def _expires_at(item: Item) -> int:
    return instant_of(bytes(item["y" if "y" in item else "e"]["B"]))


def _common(row: StoredRow | HistoryRow) -> Item:
    common: Item = {"n": {"S": row.namespace}, "i": {"S": row.timer_id}, "r": {"B": row.record}}
    if row.tags:
        common["t"] = {"L": [{"S": tag} for tag in row.tags]}
    return common


def _order(kind: bytes, row: StoredRow | HistoryRow, generation: bytes = b"") -> bytes:
    check_lengths(row)
    try:
        return order_key(kind, row.execute_at, row.uuid, generation)
    except OverflowError:
        raise DefiniteFailure(f"{row.timer_id!r}: the instant {row.execute_at} is out of range") from None


def _checked(item: Item, row: StoredRow | HistoryRow | RunRow) -> Item:
    # Entries in local indexes count towards the limit.
    entries = [{name: item[name] for name in names if name in item} for names in _ENTRIES]
    if (size := item_bytes(item) + sum(map(item_bytes, entries))) > ITEM_BYTES_MAX:
        raise DefiniteFailure(
            f"{row.uuid.hex()}: {size} bytes; an item of DynamoDB, with its entries in indexes, takes {ITEM_BYTES_MAX}"
        )
    return item


def item_bytes(item: Item) -> int:
    """The size of the item as DynamoDB counts it, rounded up."""
    return _ITEM_OVERHEAD_BYTES + sum(len(name) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Item) -> int:
    ((kind, content),) = value.items()
    if kind == "B":
        return len(content)
    if kind == "L":
        return 3 + sum(1 + _value_bytes(each) for each in content)
    return len(content.encode())


def row_of(item: Item) -> StoredRow | HistoryRow:
    """The row of an item; a damaged one as far as it is left."""
    try:
        return _row(item)
    except _DAMAGE as error:
        return _damaged_row(item, error)


def _row(item: Item) -> StoredRow | HistoryRow:
    sort = bytes(item["s"]["B"])
    at = instant_of(bytes(item["o"]["B"])[1:9])
    tags = tuple(tag["S"] for tag in item["t"]["L"]) if "t" in item else ()
    texts = (item["n"]["S"], item["i"]["S"], tags, bytes(item["r"]["B"]))
    if is_timer(sort):
        why = item["w"]["S"] if "w" in item else None
        return StoredRow(at, uuid_of(sort), bytes(item["g"]["B"]), *texts, why)
    expires_at = _expires_at(item)
    status, finished_at = _STATUSES[item["z"]["S"]], int(item["f"]["N"])
    return HistoryRow(at, uuid_of(sort), generation_of(sort), *texts, status, finished_at, expires_at)


def _damaged_row(item: Item, error: Exception) -> StoredRow | HistoryRow:
    sort, place = bytes(item["s"]["B"]), bytes_in(item, "o")
    at = instant_of(place[1:9]) if len(place) > 8 else 0
    tags = item.get("t", {}).get("L", ())
    texts = (
        text_in(item, "n"),
        text_in(item, "i"),
        tuple(tag["S"] for tag in tags if "S" in tag),
        damaged_record(error, bytes_in(item, "r") or text_in(item, "r").encode()),
    )
    if is_timer(sort):
        reason = (text_in(item, "w") or "damaged") if place.startswith(SUSPENDED) else None
        return StoredRow(at, uuid_of(sort), bytes_in(item, "g") or GENERATION_LOST, *texts, reason)
    status = _STATUSES.get(text_in(item, "z"), Status.FAILED)
    return HistoryRow(at, uuid_of(sort), generation_of(sort), *texts, status, at, 0)


def bytes_in(item: Item, name: str) -> bytes:
    """An attribute of bytes; empty if the item lacks it or has another type there."""
    return bytes(item.get(name, {}).get("B", b""))


def text_in(item: Item, name: str) -> str:
    """An attribute of text, likewise."""
    return str(item.get(name, {}).get("S", ""))


def generation_of_entry(item: Item) -> bytes:
    """The generation in an entry of the index by instant."""
    return bytes_in(item, "g") or GENERATION_LOST


def run_row_of(item: Item) -> RunRow:
    """The row of a run's item; a damaged one as far as it is left."""
    sort = bytes(item["s"]["B"])
    generation = generation_of_run(sort)
    uuid = sort[-len(generation) - UUID_BYTES : -len(generation)]
    try:
        return RunRow(uuid, generation, bytes(item["r"]["B"]), _expires_at(item))
    except _DAMAGE as error:
        return RunRow(uuid, generation, damaged_record(error, bytes_in(item, "r")), 0)
