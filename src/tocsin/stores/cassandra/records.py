"""Records in Cassandra: a partition for each kind, a row for each record. The kind's version is in the row before them all.

All writes are conditional, because no clock may decide which of two came later, and batches of one partition, so that the
kind's version changes with the record. That version is a random number: one that counts would have to be part of the
condition, and writes of different records would contradict each other.
"""

from __future__ import annotations

import builtins
import random
from collections.abc import Sequence

from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.stores.cassandra.client import CassandraClient, Row, Write
from tocsin.stores.cassandra.keys import records_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.orders import behind

_GET = "SELECT k, v, n FROM {t} WHERE p = ? AND k = ?"
_RANGE = "SELECT k, v, n FROM {t} WHERE p = ? AND k >= ? AND k < ? ORDER BY k %s LIMIT ?"
_INSERT = "INSERT INTO {t} (v, n, p, k) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_REPLACE = "UPDATE {t} SET v = ?, n = ? WHERE p = ? AND k = ? IF n = ?"
_DELETE = "DELETE FROM {t} WHERE p = ? AND k = ? IF EXISTS"
_NEXT_VERSION = "UPDATE {t} SET n = ? WHERE p = ? AND k = ?"
#: The key of the kind's version; those of records are visible characters.
_VERSION = b"\x00"


class CassandraRecords(ClientStore[CassandraClient]):
    """The records of a store."""

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key. A SERIAL read, which completes or excludes what an earlier write has begun."""
        rows = await self._open.read(_GET, self._partition(kind), key.encode(), serial=True)
        return _record(rows[0]) if rows else None

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> builtins.list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last
        first."""
        first, last = behind(after.encode() or _VERSION), before.encode()
        statement = _RANGE % ("DESC" if descending else "ASC")
        found: list[Record] = []
        while len(found) < limit and first < last:
            wanted = min(limit - len(found), self._open.options.page_rows_max)
            page = await self._open.read(statement, self._partition(kind), first, last, wanted)
            found += map(_record, page)
            if len(page) < wanted:
                break
            first, last = (first, page[-1][0]) if descending else (behind(page[-1][0]), last)
        return found

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`; with None, creates the record if there is none."""
        row = (value.encode(), (expected or 0) + 1, self._partition(kind), key.encode())
        write = Write(_INSERT, row) if expected is None else Write(_REPLACE, (*row, expected))
        return bool((await self._open.write_all([write, self._next_version(kind)]))[0])

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, all together; whether there was any."""
        partition = self._partition(kind)
        while found := [key for key in dict.fromkeys(keys) if await self.record(kind, key) is not None]:
            deletes = [Write(_DELETE, (partition, key.encode())) for key in found]
            # Refused as a whole if another node has removed one of them meanwhile.
            if (await self._open.write_all([*deletes, self._next_version(kind)]))[0]:
                return True
        return False

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """Random numbers; 0 before the first write."""
        return tuple(await self._open.in_parallel(self._version, kinds))

    async def _version(self, kind: str) -> int:
        rows = await self._open.read(_GET, self._partition(kind), _VERSION, serial=True)
        return int(rows[0][2] or 0) if rows else 0

    def _next_version(self, kind: str) -> Write:
        return Write(_NEXT_VERSION, (random.getrandbits(62) + 1, self._partition(kind), _VERSION))

    def _partition(self, kind: str) -> str:
        return self._open.partition(records_of(kind))


def _record(row: Row) -> Record:
    key, value, version = row
    return Record(key.decode(), (value or b"").decode(errors="replace"), version or 0)
