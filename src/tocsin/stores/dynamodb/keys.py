"""The keys of the table's items.

Every item has a partition key `p` (text) and a sort key `s` (bytes). All items of a shard share a partition key:

    p = "shard/3"   s = "shard"                    the shard item: epoch, owner
                    s = uuid "t"                   a timer, live or suspended: one item, at any instant
                    s = uuid "h" generation        a finished timer
                    s = "run" uuid generation      a run that ended while its timer went on
                    s = "fail" uuid generation     a failure

    p = "records/namespace"  s = "default"         a record of the kind `namespace`, behind the kind's version

The local index `by_instant` sorts timers and failures by `o`, a key of `tocsin.stores.orders`. The local index `by_expiry`
sorts finished timers, runs and failures by `e`, the instant at which they expire, unless DynamoDB's time to live alone
removes them; after all of them come live schedules by namespace and id. Instants are eight bytes that sort as the numbers do.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tocsin.ports.store import GENERATION_BYTES

#: An item, or an attribute's value, in DynamoDB's own notation: {"S": text}, {"B": bytes}, {"N": digits}, {"L": values}.
Item = dict[str, Any]

BY_INSTANT, BY_EXPIRY = "by_instant", "by_expiry"
#: Attributes in the index by instant besides its keys: what lists filter by, and the generation, which is part of a row's
#: place. Records are not in it: an item and its index entries share one size limit, and index writes are charged by size.
PROJECTED = ("g", "n", "i", "t", "z")

#: First letter of the `e` of a schedule: expiries begin with it from the year 290,000 on.
_SCHEDULE = b"\xff"
#: DynamoDB's limit of a sort key is 1,024 bytes, and an id has 255 characters of at most 4. Two namespaces may have the same
#: hash; what is read by it has its namespace, too.
_NAMESPACE_HASH_BYTES = 3
_SORT_BYTES_MAX = 1_024
#: The `e` of all schedules are between these.
SCHEDULES_BEGIN, SCHEDULES_END = _SCHEDULE, (_SCHEDULE * _SORT_BYTES_MAX)

_TIMER, _HISTORY = b"t", b"h"
#: Begins the sort key of a run. Not behind the uuid: reads of a timer take all items with its uuid.
RUNS_BEGIN = _RUN = b"run"
#: Likewise that of a failure.
_FAILURE = b"fail"
_UUID_BYTES = 16

META, MEMBERS = "meta", "members"


def partition_of(shard_id: int) -> str:
    """The partition of a shard."""
    return f"shard/{shard_id}"


def records_of(kind: str) -> str:
    """The partition of a kind of records."""
    return f"records/{kind}"


def key(partition: str, sort: bytes) -> Item:
    """The primary key of an item."""
    return {"p": {"S": partition}, "s": {"B": sort}}


#: The primary key of the item with the number of shards.
META_KEY = key(META, b"meta")


def shard_key(shard_id: int) -> Item:
    """The shard item's primary key."""
    return key(partition_of(shard_id), b"shard")


def timer_key(shard_id: int, uuid: bytes) -> Item:
    """The primary key of a live or suspended timer."""
    return key(partition_of(shard_id), uuid + _TIMER)


def history_key(shard_id: int, uuid: bytes, generation: bytes) -> Item:
    """The primary key of a finished timer."""
    return key(partition_of(shard_id), uuid + _HISTORY + generation)


def run_key(shard_id: int, uuid: bytes, generation: bytes) -> Item:
    """The primary key of a run."""
    return key(partition_of(shard_id), _RUN + uuid + generation)


def failure_key(shard_id: int, uuid: bytes, generation: bytes) -> Item:
    """The primary key of a failure."""
    return key(partition_of(shard_id), _FAILURE + uuid + generation)


def is_run(sort: bytes) -> bool:
    """Whether the sort key is a run's, and not one of a timer whose uuid begins alike."""
    return sort.startswith(RUNS_BEGIN) and len(sort) == len(RUNS_BEGIN) + _UUID_BYTES + GENERATION_BYTES


def is_timer(sort: bytes) -> bool:
    """Whether the sort key is a live or suspended timer's; otherwise it is a finished one's."""
    return sort[_UUID_BYTES:] == _TIMER


def uuid_of(sort: bytes) -> bytes:
    """The uuid in a sort key of a timer."""
    return sort[:_UUID_BYTES]


def generation_of_run(sort: bytes) -> bytes:
    """The generation in a sort key of a run."""
    return sort[len(_RUN) + _UUID_BYTES :]


def generation_of(sort: bytes) -> bytes:
    """The generation in a sort key of a finished timer."""
    return sort[_UUID_BYTES + 1 :]


def schedule_order(namespace: str, schedule_id: str) -> bytes:
    """The `e` of a live schedule: sorts as the bytes of ids do among those of its namespace, the name under which schedules
    are stored."""
    return (_of_schedules(namespace) + schedule_id.encode())[:_SORT_BYTES_MAX]


def schedules_end(namespace: str) -> bytes:
    """Sorts after each `e` of the namespace's schedules, whose ids are UTF-8."""
    return _of_schedules(namespace) + b"\xff"


def behind(order: bytes) -> bytes:
    """The least `e` that sorts behind this one; this one if it has the most bytes possible."""
    return (order + b"\0")[:_SORT_BYTES_MAX]


def _of_schedules(namespace: str) -> bytes:
    return _SCHEDULE + hashlib.sha256(namespace.encode()).digest()[:_NAMESPACE_HASH_BYTES]
