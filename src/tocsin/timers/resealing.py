"""After a rotation: what waits is encrypted again under the present key, while the node that acts for all runs.

Each row becomes an ordinary write at the owner of its shard, on the condition that nothing has happened to it since it was
read. A timer that is about to fire, or has begun to, is left alone: a change would give it another `webhook-id`. What is left
is counted, and noted in the record of its key, which `tocsin keys secrets` shows. Finished rows keep the former key until
their retention is over. What the service agent has is rewritten on the node that runs it.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Counts
from collections.abc import AsyncIterator, Callable
from functools import partial
from logging import INFO, WARNING
from time import monotonic

import msgspec

from tocsin.administration import note_seal_use, seal_keys, signing_keys
from tocsin.model.credential import CREDENTIALS_MAX
from tocsin.model.errors import RecordUndecodable, StoreCallFailed, StoreError, TocsinError
from tocsin.model.instants import INSTANT_MAX, US_PER_SECOND
from tocsin.model.job import RowFilter
from tocsin.model.monitor import Monitor, MonitorState, PutMonitor
from tocsin.model.schedule import DefinitionChanges, Edit
from tocsin.model.sealed import changes_sealed, headers_opened, hooks_opened, seal_timer, url_opened
from tocsin.model.sealed_text import key_ids_in
from tocsin.model.stored_secrets import hooks_by_event
from tocsin.model.timer import Changes, Timer, decode_record
from tocsin.ports.agent_calls import SealedCalls
from tocsin.ports.event import Counter
from tocsin.ports.observer import Event
from tocsin.ports.seals import SealBroken, opener, sealer
from tocsin.ports.store import KEY_MAX, KEY_MIN, StoredRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.jobs import every_job
from tocsin.timers.service import TimerService

#: Rows of one page, and the pause for each: a million rows take some minutes, and little of the store's time.
_PAGE_ROWS, _PAUSE_PER_ROW_S = 500, 0.000_2
#: Between two passes, while something is left; and once nothing is, since each reads all that is stored. Nodes that are not
#: restarted yet still encrypt with a former key.
_INTERVAL_S, _INTERVAL_DONE_S = 300.0, 3_600.0
#: Timers that are due sooner are left to the next pass: by then they have fired.
_AHEAD_US = 60 * US_PER_SECOND


class SecretsRewritten(Event, frozen=True):
    """Secrets of `rows` timers, schedules, monitors, namespaces and credentials, or service calls and tenants, were encrypted
    again under the present key; `left` wait for the next pass."""

    rows: int
    left: int
    level = INFO
    counter = Counter("tocsin_secrets_rewritten", "Rows encrypted again under the present key.", by="rows")


class SecretsPassFailed(Event, frozen=True):
    """A pass over the secrets of `what` failed for this reason; the next one starts over in some minutes. `calls` are those
    of the service agent, `timers` all others."""

    what: str
    reason: str
    level = WARNING


class Resealing:
    """Passes over all that waits, while `acts_for_all` and a key other than the one with the id `present` is known; and over
    what the service agent has, while `calls` returns that, since it runs here."""

    def __init__(
        self,
        context: Context,
        service: TimerService,
        present: str,
        total_shards: int,
        acts_for_all: Callable[[], bool],
        calls: Callable[[], SealedCalls | None] = lambda: None,
    ) -> None:
        self._calls = calls
        self._context, self._service, self._present = context, service, present
        self._total_shards, self._acts_for_all = total_shards, acts_for_all
        self._former_ids: set[str] = set()

    async def run(self) -> None:
        """Passes again and again."""
        next_at = {self.check: 0.0, self.check_calls: 0.0}
        while True:
            for check, is_mine in ((self.check, self._acts_for_all()), (self.check_calls, self._calls() is not None)):
                if not is_mine or monotonic() < next_at[check]:
                    continue
                done = False
                try:
                    done = await check()
                except (StoreCallFailed, StoreError, TocsinError) as error:
                    what = "timers" if check == self.check else "calls"
                    self._context.observe(SecretsPassFailed(what, f"{type(error).__name__}: {error}"))
                next_at[check] = monotonic() + (_INTERVAL_DONE_S if done else _INTERVAL_S)
            await asyncio.sleep(1)

    async def check_calls(self) -> bool:
        """One pass over what the agent has, if there is a former key and it runs here; whether nothing is left. Raises
        StoreError."""
        context, calls = self._context, self._calls()
        former = await self._former_keys()
        if calls is None or not former:
            return False
        rewritten, left = await calls.reseal(former)
        now_us = context.clock.now_us()
        for name in former:
            noted = note_seal_use(context.store, name, calls_waiting=left.get(name, 0), calls_checked_at=now_us)
            await context.bounded(noted)
        if rewritten:
            context.observe(SecretsRewritten(rewritten, sum(left.values())))
        return not any(left.values())

    async def _former_keys(self) -> set[str]:
        """The ids of the keys that the present one has replaced."""
        context = self._context
        known = {key.id: key for key in await context.bounded(seal_keys(context.store))}
        # While nodes are restarted, one that encrypts with the former key leaves alone what others encrypt with the next.
        since = known[self._present].since if self._present in known else 0
        return {key.id for key in known.values() if key.id != self._present and key.since <= since}

    async def check(self) -> bool:
        """One pass, if there is a former key; whether nothing is left. Raises StoreError, Unavailable."""
        context = self._context
        former = self._former_ids = await self._former_keys()
        if not former:
            return False
        left: Counts[str] = Counts()
        rewritten = 0
        for namespace in await self._service.namespaces.all():
            if used := self._former(msgspec.json.encode(namespace)):
                changed = await self._service.namespaces.reseal(namespace.name)
                rewritten += changed
                left.update(() if changed else used)
            for credential in (await self._service.credentials.page(namespace.name, "", CREDENTIALS_MAX))[0]:
                if used := self._former(credential.secret.encode()):
                    changed = await self._service.credentials.reseal(credential)
                    rewritten += changed
                    left.update(() if changed else used)
        for signing in await context.bounded(signing_keys(context.store)):
            # Each is followed by another one, and then removed.
            left.update(self._former(signing.private.encode()))
        for job in await context.bounded(every_job(context.store, context.observe)):
            # It ends, or is canceled; what has ended needs its URL no more.
            left.update(self._former(job.url.encode()) if job.live else ())
        async for shard_id, row in self._rows():
            if self._former(row.record):
                used, changed = await self._rewrite(shard_id, row)
                rewritten += changed
                left.update(() if changed else used)
        now_us = context.clock.now_us()
        for name in former:
            await context.bounded(note_seal_use(context.store, name, waiting=left[name], checked_at=now_us))
        if rewritten:
            context.observe(SecretsRewritten(rewritten, left.total()))
        return not left.total()

    def _former(self, record: bytes) -> set[str]:
        """The ids of former keys in a record."""
        return key_ids_in(record.decode("utf-8", "replace")) & self._former_ids if b"tsl1." in record else set()

    async def _rows(self) -> AsyncIterator[tuple[int, StoredRow]]:
        """All live rows, those that are suspended included, by shard."""
        store, context = self._context.store, self._context
        for shard_id in range(self._total_shards):
            for read in (partial(store.load, up_to=KEY_MAX), store.load_suspended):
                after = KEY_MIN
                while after < KEY_MAX:
                    page = await context.in_turn(read(shard_id, after, limit=_PAGE_ROWS))
                    for row in page.rows:
                        yield shard_id, row
                    after = page.complete_to
                    await asyncio.sleep(_PAUSE_PER_ROW_S * len(page.rows))

    async def _rewrite(self, shard_id: int, row: StoredRow) -> tuple[set[str], bool]:
        """Has a row written with its secrets under the present key, if it has any under a former one and that is possible
        now; the former keys, and whether it was."""
        try:
            timer = decode_record(row.record)
        except RecordUndecodable:
            return self._former(row.record), False
        # A payload may look as if it had some.
        used = self._former(msgspec.json.encode([timer.url, timer.headers, timer.hooks]))
        return used, bool(used) and await self._written(shard_id, row, timer)

    async def _written(self, shard_id: int, row: StoredRow, timer: Timer) -> bool:
        try:
            op = self._op(row, timer)
        except SealBroken:
            return False
        if op is None:
            return False
        op.only_if = RowFilter(INSTANT_MAX, updated_before=timer.updated_at + 1)
        try:
            await self._service.write(shard_id, op)
        except TocsinError:
            # It has changed, or ended.
            return False
        return True

    def _op(self, row: StoredRow, timer: Timer) -> WriteOp | None:
        namespace = timer.namespace
        if timer.monitor is not None:
            seal, unseal = self._both(namespace)
            hooks = hooks_opened(hooks_by_event(timer), unseal)
            again = Timer(
                namespace, timer.id, timer.execute_at, timer.url, timer.created_at, timer.updated_at,
                tags=timer.tags, description=timer.description, hooks=timer.hooks and timer.hooks.changed(hooks),
                monitor=Monitor(timer.monitor.definition, MonitorState("")),
            )  # fmt: skip
            seal_timer(again, seal)
            return WriteOp(OpKind.SCHEDULE, row.uuid, namespace, timer=again, change=PutMonitor(None))
        if timer.schedule is not None:
            edit = Edit(DefinitionChanges())
            return WriteOp(OpKind.SCHEDULE, row.uuid, namespace, changes=self._changes(timer), change=edit)
        soon = self._context.clock.now_us() + _AHEAD_US
        if timer.attempts or timer.replay or timer.notifies is not None or row.execute_at < soon:
            return None
        return WriteOp(OpKind.UPDATE, row.uuid, namespace, changes=self._changes(timer))

    def _changes(self, timer: Timer) -> Changes:
        """What the timer has, under the present key. Raises SealBroken."""
        seal, unseal = self._both(timer.namespace)
        clear = Changes(
            url=url_opened(timer.url, unseal),
            headers=headers_opened(timer.headers, unseal) or msgspec.UNSET,
            hooks=hooks_opened(hooks_by_event(timer), unseal) or msgspec.UNSET,
        )
        return changes_sealed(clear, seal)

    def _both(self, namespace: str) -> tuple[Callable[[str], str], Callable[[str], str]]:
        return sealer(self._context.seals, namespace), opener(self._context.seals, namespace)
