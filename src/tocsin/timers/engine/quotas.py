"""The count of pending timers in this node's shards, for namespaces with a quota of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from tocsin.model.errors import StoreError
from tocsin.model.ids import namespace_hash, shards_of_namespace
from tocsin.model.quota import Room
from tocsin.model.timer import Status
from tocsin.ports.observer import LoadFailed
from tocsin.ports.store import TIMERS_END_US, ListQuery
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.quota_accounts import PendingCount, QuotaAccount
from tocsin.timers.engine.rows import Batch, OpKind, Row
from tocsin.timers.engine.shard import Shard

_PENDING = frozenset({Status.PENDING})
#: Share of the time that a count spends on reading; and its least pause after a page.
_READING_SHARE, _PAUSE_S_MIN = 0.1, 0.02
#: Rows of others that one page may pass over, for each of its rows.
_OTHERS_PER_ROW = 5
#: When a count that has failed is made again.
_RETRY_US = 10_000_000


def room_for(context: Context, shard_id: int, namespace: str) -> Room | None:
    """How many timers a batch of the shard may create in the namespace; None: any number."""
    account = context.quotas.get(namespace)
    return None if account is None else account.room(shard_id)


def reserve(context: Context, batch: Batch, by: int) -> None:
    """Reserves what the batch creates (1), or ends that when its outcome is known (-1)."""
    for name, timers in batch.creates.items():
        if (account := context.quotas.get(name)) is not None:
            account.reserved = max(account.reserved + by * timers, 0)


def note_committed(context: Context, batch: Batch) -> None:
    """Adds what a durable batch has created in namespaces with quotas, and subtracts what has ended."""
    quotas, shard_id, epoch = context.quotas, batch.store.shard_id, batch.store.epoch

    def note(row: Row, by: int) -> None:
        timer = row.timer
        account = quotas.get(timer.namespace)
        if account is None or timer.schedule is not None or timer.notifies is not None or timer.monitor is not None:
            return
        count = account.count_of(shard_id)
        if count is not None and count.epoch == epoch:
            count.note(row.key, by)

    for part in batch.parts:
        for row in part.rows:
            note(row, 1)
    for op, answer in zip(batch.ops, batch.answers, strict=True):
        if type(answer) is not Row:
            continue
        if op.kind is OpKind.REPLAY or (op.kind is OpKind.CREATE and not answer.timer.has_joined):
            note(answer, 1)
    for row in batch.ended.values():
        note(row, -1)
    for entry in batch.finished:
        note(entry.row, -1)


class PendingCounting:
    """Counts the pending timers of namespaces with such a quota in this node's shards, page by page: some time after a claim,
    and again every `quota_count_interval`."""

    def __init__(self, context: Context, shards: Mapping[int, Shard], total_shards: int) -> None:
        self._context = context
        self._shards = shards
        self._total_shards = total_shards
        self._owned: dict[int, int] = {}

    async def check(self) -> None:
        """Makes the counts that are due, the longest due first."""
        if not self._context.quotas:
            return
        self._follow()
        now_us = self._context.clock.boottime_us()
        due = sorted(
            (count.due_us, name, shard_id)
            for name, account in self._context.quotas.items()
            for shard_id, count in (account.shards or {}).items()
            if count.due_us <= now_us
        )
        for _, name, shard_id in due:
            await self._count(name, shard_id)
            self._follow()

    def _follow(self) -> None:
        """Has the accounts follow the ownership of shards, where it or they have changed."""
        owned = {shard_id: shard.window.epoch for shard_id, shard in self._shards.items() if shard.window is not None}
        changed, self._owned = owned != self._owned, owned
        for account in self._accounts():
            if account.shards is None or changed:
                namespace = account.namespace
                if account.arc is None:
                    arc = shards_of_namespace(namespace_hash(namespace.name), namespace.num_shards, self._total_shards)
                    account.arc = frozenset(arc)
                account.follow(owned)

    def _accounts(self) -> Iterable[QuotaAccount]:
        return [each for each in self._context.quotas.values() if each.quotas.pending is not None]

    async def _count(self, name: str, shard_id: int) -> None:
        """One count of a shard, unless it is no longer wanted."""
        context, limits = self._context, self._context.limits
        count = self._wanted(name, shard_id)
        if count is None:
            return
        count.begin()
        cursor = None
        while True:
            began_us = context.clock.boottime_us()
            query = ListQuery(
                (name,), (shard_id,), _PENDING, execute_before=TIMERS_END_US, cursor=cursor, limit=limits.quota_page_rows,
                scan_rows_max=limits.quota_page_rows * _OTHERS_PER_ROW,
            )  # fmt: skip
            try:
                page = await context.in_turn(context.store.list(query))
            except StoreError as error:
                context.observe(LoadFailed(shard_id, str(error)))
                count.fail(context.clock.boottime_us() + _RETRY_US)
                return
            if self._wanted(name, shard_id) is not count:
                return
            cursor = page.cursor
            if cursor is None:
                due_us = context.clock.boottime_us() + limits.quota_count_interval_us
                count.complete(len(page.rows), context.clock.now_us(), due_us)
            else:
                count.read(len(page.rows), cursor[:2])
            read_s = (context.clock.boottime_us() - began_us) / 1e6
            await asyncio.sleep(max(read_s * (1 / _READING_SHARE - 1), _PAUSE_S_MIN))
            if cursor is None:
                return

    def _wanted(self, name: str, shard_id: int) -> PendingCount | None:
        account = self._context.quotas.get(name)
        return None if account is None else account.count_of(shard_id)
