"""A node's way to the store that all nodes share: it takes time, can be cut, and counts what is read and written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tocsin.stores.memory import MemoryStore

from .counts import Counts

#: What each call counts as. Others count under their own names.
KINDS = {
    "shards": "read shards",
    "members": "read members",
    "records_versions": "read versions of records",
    "load": "load",
    "load_suspended": "load suspended",
    "apply": "commit",
}


class CountedStore:
    """The store as one node reaches it. Each call takes `round_trip_s`; while `cut`, none is answered."""

    def __init__(self, store: MemoryStore, counts: Counts, round_trip_s: Callable[[], float]) -> None:
        self.capabilities = store.capabilities
        self.cut = False
        self._store = store
        self._counts = counts
        self._round_trip_s = round_trip_s

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._store, name)
        kind = KINDS.get(name, name.replace("_", " "))

        async def call(*args: Any, **fields: Any) -> Any:
            self._counts.store(kind)
            half_s = self._round_trip_s() / 2
            await asyncio.sleep(half_s)
            if self.cut:
                await asyncio.Event().wait()
            result = await method(*args, **fields)
            if isinstance(result, list):
                self._counts.rows(kind, len(result))
            await asyncio.sleep(half_s)
            if self.cut:
                await asyncio.Event().wait()
            return result

        # The next call finds it at once.
        self.__dict__[name] = call
        return call
