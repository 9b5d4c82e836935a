"""What the use cases of schedules need of the timers' beside writes: rows by uuid, and lists by id."""

from __future__ import annotations

import asyncio
from functools import partial

from tocsin.model.ids import namespace_hash, shard_of, shards_of_namespace
from tocsin.timers.history import RunPage, runs_of
from tocsin.timers.listing import IdListRequest, TimerView, page_by_id, view_of_stored
from tocsin.timers.namespaces import Namespaces
from tocsin.timers.turns import Turns


class ScheduleRows(Namespaces):
    """The part of the timer service that reads schedules' rows. `turns` has what clients let this process reckon;
    `pages` are the pages of lists that may be read at once."""

    turns: Turns
    pages: asyncio.Semaphore

    @property
    def occurrences_kept(self) -> int:
        """How many occurrences of each schedule are kept, the newest ones, while retention lasts."""
        return self._context.limits.occurrences_kept

    def now_us(self) -> int:
        """This node's wall clock."""
        return self._context.clock.now_us()

    async def shard_of(self, namespace: str, uuid: bytes) -> int:
        """The shard of a uuid. Raises NamespaceNotFound, Unavailable."""
        await self._ensure_namespace_known(namespace)
        return self._shard_of(namespace, uuid)

    async def get_by_uuid(self, namespace: str, uuid: bytes) -> TimerView | None:
        """The live row of a uuid, or else the latest finished one. Raises NamespaceNotFound, Unavailable."""
        shard_id = await self.shard_of(namespace, uuid)
        found = (await self._read(self._context.store.fetch(shard_id, [uuid]))).get(uuid)
        row = found and (found.live or found.finished)
        return view_of_stored(row, shard_id) if row else None

    async def runs_by_uuid(self, shard_id: int, uuid: bytes, limit: int, cursor: str | None) -> RunPage:
        """A page of a row's runs, newest first. Raises InvalidInput for a bad cursor, and Unavailable."""
        return await self._read(runs_of(self._context.store, shard_id, uuid, limit, cursor))

    async def list_schedules(self, namespace: str, request: IdListRequest) -> tuple[list[TimerView], str | None]:
        """A page of live schedules, and the id behind which the next one begins if one may follow. Raises
        NamespaceNotFound, Unavailable."""
        await self._ensure_namespace_known(namespace)
        known, total = self._namespace(namespace), self._supervisor.total_shards
        arc = namespace_hash(namespace)
        shards = shards_of_namespace(arc, known.num_shards, total)
        read = partial(self._context.store.list_schedules, namespace, shards)
        async with self.pages:
            return await page_by_id(
                request,
                lambda after_id, limit: self._read(read(after_id, limit)),
                lambda uuid: shard_of(arc, uuid, known.num_shards, total),
            )
