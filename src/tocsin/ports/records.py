"""The records port: small documents that people change now and then, as against timers, which change all the time.

Namespaces, API keys, secrets, sign-ins and the audit trail are records (`tocsin.administration`). A store knows nothing about
them: a new kind of record costs it no line. `tocsin.stores.memory` is the specification in code; errors are those of
`tocsin.ports.store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

#: Limits of what every store can hold, in characters of a kind and of a key, and in bytes of a value as UTF-8.
KIND_CHARS_MAX, KEY_CHARS_MAX, VALUE_BYTES_MAX = 100, 400, 256 * 1024
#: Sorts after every key.
RECORD_KEY_END = "\x7f"
#: How many records one `delete_records` may name, so that it is one transaction everywhere.
DELETED_AT_ONCE_MAX = 50


class Record(NamedTuple):
    """A record: its key, which is unique within its kind; its value, text without U+0000, opaque to the store; and its
    version, 1 after it was created and one more with each change. A record that is created again begins at 1.

    What is stored may be damaged, by hand or by a restore in part. A damaged record is returned like any other, with what is
    left of its value and a version of at least 0, so that it keeps no other from being read."""

    key: str
    value: str
    version: int


class Records(Protocol):
    """Records by kind and key. Both are visible ASCII characters, at least one; keys sort by these, as bytes do.

    Reads are strongly consistent. Each write takes effect as a whole or not at all, and together with the version of its
    kind. After OutcomeUnknown it may have taken effect, or may still do so: the caller reads what became of it.
    """

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key."""

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last first,
        if `descending`. Fewer only if there are no more. Not a snapshot: each is read as of an instant after the call."""

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`, which raises its version by one; with None, creates the
        record if there is none. Whether it did: False means that another write came first, so that the caller reads again
        (where a database repeats a write by itself, this very write may have been the first)."""

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, at most DELETED_AT_ONCE_MAX, all together; whether there was any. To repeat it
        is harmless."""

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """For each of these kinds, at least one, a number that each write of the kind changes to one that it never was
        before; 0 before the first. Cheap reads, one where the database can, by which a node notices that it must read a kind
        again: records that are read after it are at least as new. `urgent`: the node may fire only while such reads succeed,
        so this one should not wait for others."""
