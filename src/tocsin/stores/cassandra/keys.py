"""The keys of the table's rows.

Everything is in one table with a partition key `p` (text) and a clustering key `k` (bytes, in unsigned order). A shard is one
partition, because a conditional batch cannot have two:

    p = "shard/3"   (static)               epoch, owner, and the tokens of the latest batch and of the last one before the
                                           owner's claim
                    0x00                   nothing: it is the partition's first row
                    "T" uuid "t"           a timer, live or suspended: one row, at any instant
                    "T" uuid "h" generation    a finished timer
                    "R" uuid generation    a run that ended while its timer went on
                    "L" instant uuid       an entry of the order of live timers
                    "S" instant uuid       the same of suspended timers
                    "H" instant uuid generation    the same of finished timers
                    "E" instant uuid generation    a failure, by the instant at which it failed
                    "F" uuid generation    that instant
                    "N" namespace-hash id  an entry of the list of schedules

    p = "records/namespace"  "default"     a record of the kind `namespace`, behind the kind's version

Timers are rows of "T". The entries of "L", "S" and "N" lead to them and may be outdated: an entry counts if the timer has
its instant or its id. The keys of "L", "S" and "H" are made in `tocsin.stores.orders`,
as are those of "E".
"""

from __future__ import annotations

import hashlib

META, MEMBERS = "meta", "members"

_TIMER, _RUN, _FAILURE, _SCHEDULE = b"T", b"R", b"F", b"N"
_LIVE_END, _HISTORY = b"t", b"h"
_NAMESPACE_HASH_BYTES = 16
#: The entries of all schedules of a shard are between these keys.
SCHEDULES_BEGIN, SCHEDULES_END = _SCHEDULE, bytes([_SCHEDULE[0] + 1])
_UUID_BYTES = 16
#: Sorts after every uuid and generation.
_END = b"\xff" * 64


def partition_of(shard_id: int) -> str:
    """The partition of a shard."""
    return f"shard/{shard_id}"


def records_of(kind: str) -> str:
    """The partition of a kind of records."""
    return f"records/{kind}"


def timer_key(uuid: bytes) -> bytes:
    """The key of a live or suspended timer."""
    return _TIMER + uuid + _LIVE_END


def history_key(uuid: bytes, generation: bytes = b"") -> bytes:
    """The key of a finished timer; without a generation, before those of all its finished rows."""
    return _TIMER + uuid + _HISTORY + generation


def run_key(uuid: bytes, generation: bytes = b"") -> bytes:
    """The key of a run; without a generation, before those of all its runs."""
    return _RUN + uuid + generation


def runs_begin() -> bytes:
    """Sorts before every run of a shard."""
    return _RUN


def failure_key(uuid: bytes, generation: bytes = b"") -> bytes:
    """The key under which the instant of a failure is found; without a generation, before those of all the timer's."""
    return _FAILURE + uuid + generation


def is_timer(key: bytes) -> bool:
    """Whether a key of "T" is a live or suspended timer's; otherwise it is a finished one's."""
    return key.endswith(_LIVE_END) and len(key) == 2 + _UUID_BYTES


def uuid_of(key: bytes) -> bytes:
    """The uuid in a key of "T" or "R"."""
    return key[1 : 1 + _UUID_BYTES]


def generation_of(key: bytes) -> bytes:
    """The generation in the key of a finished timer or a run."""
    start = 1 + _UUID_BYTES
    return key[start:] if key.startswith(_RUN) else key[start + 1 :]


def end_of(key: bytes) -> bytes:
    """Sorts after every key that begins with this one and continues with a uuid or a generation."""
    return key + _END


def schedule_key(namespace: str, schedule_id: str = "") -> bytes:
    """The key of a schedule's entry: sorts as the bytes of ids do. `namespace` is the name under which schedules are
    stored."""
    return _SCHEDULE + hashlib.sha256(namespace.encode()).digest()[:_NAMESPACE_HASH_BYTES] + schedule_id.encode()


def schedule_id_of(key: bytes) -> str:
    """The schedule's id in the key of its entry."""
    return key[len(_SCHEDULE) + _NAMESPACE_HASH_BYTES :].decode(errors="replace")
