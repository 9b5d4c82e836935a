"""The creates of the timer service: how requests, single or many, become writes of their shards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from tocsin.model.condition import Condition
from tocsin.model.errors import TocsinError
from tocsin.model.ids import timer_uuid
from tocsin.model.packed import NewTimer, PackedTimer, unpacked
from tocsin.model.sealed import seal_timer
from tocsin.model.stored_secrets import withholds
from tocsin.model.timer import Timer
from tocsin.ports.seals import sealer
from tocsin.timers.credentials import StoredCredentials, names_credential, uses_of
from tocsin.timers.engine.context import Context
from tocsin.timers.listing import TimerView
from tocsin.timers.namespaces import Namespaces
from tocsin.timers.quotas import QuotaGate
from tocsin.timers.redacted import restore_secrets
from tocsin.timers.writing import (
    Arrivals,
    BatchOfCreates,
    CreateClient,
    CreateOutcome,
    Outcomes,
    Writes,
    create_op,
    is_plain,
)

#: Returns the stored timers of a namespace by their ids.
GetMany = Callable[[str, Iterable[str]], Awaitable[dict[str, TimerView]]]


class Creating:
    """Creates timers. Errors, and what `[redacted]` stands for, are as `TimerService.create` describes them."""

    def __init__(
        self,
        context: Context,
        namespaces: Namespaces,
        credentials: StoredCredentials,
        quotas: QuotaGate,
        writes: Writes,
        get_many: GetMany,
    ) -> None:
        self._credentials = credentials
        self._context, self._namespaces, self._quotas, self._writes = context, namespaces, quotas, writes
        self._get_many = get_many
        #: Creates of clients that wait for one each.
        self.arrivals = Arrivals(writes)
        self._shared = not context.store.capabilities.exclusive
        self._tasks: set[asyncio.Task[None]] = set()

    async def one(self, timer: Timer, condition: Condition | None = None) -> TimerView:
        """Stores a validated timer; it is durable when this returns."""
        seal_timer(timer, sealer(self._context.seals, timer.namespace))
        return await self._one(timer, condition)

    async def _one(self, timer: Timer, condition: Condition | None) -> TimerView:
        (outcome,) = await self._many([timer], [condition])
        if isinstance(outcome, TocsinError):
            raise outcome
        return outcome

    def begin(self, client: CreateClient, timer: NewTimer, condition: Condition | None = None) -> None:
        """Creates a timer for a client that waits in no coroutine: it gets the view when the timer is durable, perhaps at
        once. Raises NamespaceNotFound, QuotaExceeded."""
        unknown = self._shared and timer.namespace not in self._context.namespaces
        if not isinstance(timer, Timer):
            if not (unknown or self._context.quotas):
                uuid = timer.uuid
                self.arrivals.add(self._namespaces.shard_of(timer.namespace, uuid), uuid, timer, client)
                return
            timer = unpacked(timer)
        seal_timer(timer, sealer(self._context.seals, timer.namespace))
        if unknown or withholds(timer) or names_credential(timer):
            task = asyncio.get_running_loop().create_task(client.follow(self._one(timer, condition)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            if self._context.quotas:
                self._quotas.check_create(timer)
            uuid = timer_uuid(timer.namespace, timer.id)
            shard_id = self._namespaces.shard_of(timer.namespace, uuid)
            if is_plain(timer, condition):
                self.arrivals.add(shard_id, uuid, timer, client)
            else:
                assert condition is not None
                self._writes.submit(shard_id, create_op(uuid, timer, condition), client)

    async def many(
        self, timers: Sequence[Timer], conditions: Sequence[Condition | None] | None = None
    ) -> list[TimerView | TocsinError]:
        """Like `one` for many timers: the results are in order, and each timer fails on its own."""
        for timer in timers:
            seal_timer(timer, sealer(self._context.seals, timer.namespace))
        return await self._many(timers, conditions)

    async def _many(
        self, timers: Sequence[Timer], conditions: Sequence[Condition | None] | None
    ) -> list[TimerView | TocsinError]:
        """The same for timers whose secrets are sealed."""
        for namespace in {timer.namespace for timer in timers}:
            await self._namespaces.ensure_known(namespace)
        wanted = list(zip(timers, conditions or [None] * len(timers), strict=True))
        incomplete = [each for each in wanted if withholds(each[0])]
        known = await restore_secrets(incomplete, self._get_many) if incomplete else {}
        for timer in timers:
            if names_credential(timer):
                try:
                    await self._credentials.check(timer.namespace, uses_of(timer))
                except TocsinError as error:
                    known[id(timer)] = error
        outcomes = Outcomes(len(wanted))
        creates = BatchOfCreates(self._writes, outcomes)
        limited = bool(self._context.quotas)
        for position, (timer, condition) in enumerate(wanted):
            uuid = timer_uuid(timer.namespace, timer.id)
            try:
                shard_id = self._namespaces.shard_of(timer.namespace, uuid)
            except TocsinError as error:
                outcomes.take(position, error)
                continue
            if known and (outcome := known.get(id(timer))) is not None:
                outcomes.take(position, outcome)
                continue
            if limited and (refused := self._quotas.refusal(timer)) is not None:
                outcomes.take(position, refused)
                continue
            creates.add(shard_id, uuid, timer, condition, position)
        creates.submit()
        return await outcomes.views()

    async def packed(self, timers: Sequence[PackedTimer]) -> list[CreateOutcome]:
        """Like `many` for timers that a codec has made."""
        if self._context.quotas:
            return [*await self.many([unpacked(timer) for timer in timers])]
        for namespace in {timer.namespace for timer in timers}:
            await self._namespaces.ensure_known(namespace)
        outcomes = Outcomes(len(timers))
        creates = BatchOfCreates(self._writes, outcomes)
        for position, timer in enumerate(timers):
            uuid = timer.uuid
            try:
                creates.add(self._namespaces.shard_of(timer.namespace, uuid), uuid, timer, None, position)
            except TocsinError as error:
                outcomes.take(position, error)
        creates.submit()
        return await outcomes.all
