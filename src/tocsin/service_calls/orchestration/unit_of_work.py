"""The unit of work of one transaction over several messages: each call is loaded once and written once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from tocsin.model.errors import DefiniteFailure
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import Envelope
from tocsin.service_calls.background import AgentContext, row_damaged
from tocsin.service_calls.events import AgentEvent, ServiceCallChanged
from tocsin.service_calls.messages import CallKey, CallStatus, Message, Registry
from tocsin.service_calls.orchestration.service_call import Step
from tocsin.service_calls.ports import Change, ServiceCall, ServiceCallStore, Transaction

T = TypeVar("T")

#: How often a transaction is repeated because another one changed the same calls between its read and its write.
_CONFLICTS_MAX = 3


class ChangedMeanwhile(DefiniteFailure):
    """Another transaction changed a call after this one had read it. Nothing was written; the work may be repeated."""


async def transact(
    store: ServiceCallStore, context: AgentContext, work: Callable[[UnitOfWork], Coroutine[Any, Any, T]]
) -> T:
    """Calls `work` in a transaction, and writes what it changed. Returns its result and emits its events once they are
    durable. Raises the store's errors and those of `work`.

    It is repeated from the start after ChangedMeanwhile, a limited number of times, or by the store after a conflict.
    """

    async def attempt(transaction: Transaction) -> tuple[T, list[AgentEvent]]:
        unit = UnitOfWork(transaction, context.registry, context.clock.now_us())
        result = await work(unit)
        await unit.write()
        return result, unit.events

    for conflicts in range(_CONFLICTS_MAX + 1):
        try:
            result, events = await store.transact(attempt)
            break
        except ChangedMeanwhile:
            if conflicts == _CONFLICTS_MAX:
                raise
    for event in events:
        context.observe(event)
    return result


class UnitOfWork:
    """The calls of one transaction in their current state, and the messages and events that result from their changes.

    It runs on the database's thread and therefore has its own id source: the process's id source is not
    thread-safe.
    """

    def __init__(self, transaction: Transaction, registry: Registry, now_us: int) -> None:
        self.now_us = now_us
        self.new_id: Callable[[], str] = Uuid7Source(lambda: now_us)
        self.events: list[AgentEvent] = []
        self._transaction = transaction
        self._registry = registry
        # As they were read, and as they are now. A call that was read and is absent now was deleted.
        self._read: dict[CallKey, ServiceCall] = {}
        self._calls: dict[CallKey, ServiceCall] = {}
        self._inserted: set[CallKey] = set()
        self._by_idempotency_key: dict[tuple[str, str], CallKey] = {}
        self._tags_read: dict[CallKey, frozenset[str]] = {}
        self._tags: dict[CallKey, set[str]] = {}
        self._outbox: list[Envelope] = []

    # ------------------------------------------------------------------ reading

    async def load(self, keys: Collection[CallKey]) -> None:
        """Reads these calls."""
        if keys:
            self._adopt((await self._transaction.load(keys)).values())

    async def load_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> None:
        """Reads the calls with these tenants and idempotency keys."""
        if keys:
            found = await self._transaction.find_by_idempotency_key(keys)
            self._adopt(found.values())
            self._by_idempotency_key |= {index: call.key for index, call in found.items()}

    async def load_overdue(self, limit: int, postponed_us: int) -> tuple[list[ServiceCall], int]:
        """Reads the calls that the watchdog has to check now, at most `limit`. Those that can't be decoded are reported,
        and come again after `postponed_us`."""
        calls, damaged = await self._transaction.to_watch(self.now_us, limit)
        self._adopt(calls)
        if damaged:
            keys = [CallKey(row.tenant_id, row.service_call_id) for row in damaged]
            await self._transaction.postpone(keys, self.now_us + postponed_us)
            self.events += map(row_damaged, damaged)
        return calls, len(damaged)

    async def load_tags(self, keys: Collection[CallKey]) -> None:
        """Reads the tags of these calls."""
        if keys:
            for key, tags in (await self._transaction.tags(keys)).items():
                self._tags_read[key] = frozenset(tags)
                self._tags[key] = set(tags)

    def _adopt(self, calls: Iterable[ServiceCall]) -> None:
        for call in calls:
            if self._read.setdefault(call.key, call) is call:
                self._calls[call.key] = call

    def get(self, key: CallKey) -> ServiceCall | None:
        """The call in its current state; None if it does not exist or was deleted."""
        return self._calls.get(key)

    def get_by_idempotency_key(self, tenant_id: str, idempotency_key: str | None) -> ServiceCall | None:
        """The call with this idempotency key in its current state, or None."""
        key = self._by_idempotency_key.get((tenant_id, idempotency_key or ""))
        return None if key is None else self._calls.get(key)

    def tags(self, key: CallKey) -> set[str]:
        """The call's tags, to be changed in place."""
        return self._tags.setdefault(key, set())

    # ------------------------------------------------------------------ changing

    def take(self, key: CallKey, step: Step, cause: str | None) -> None:
        """Applies a step to an existing call. `cause` is the id of the message that caused it."""
        before, self._calls[key] = self._calls[key], step.after
        if before.status is not step.after.status:
            self._report(step.after)
        self._send(step.after, step.messages, cause)

    def insert(self, step: Step, cause: str) -> None:
        """Adds a new call by its first step."""
        call = step.after
        self._calls[call.key] = call
        self._inserted.add(call.key)
        self._tags[call.key] = set(call.tags)
        if call.idempotency_key is not None:
            self._by_idempotency_key[call.tenant_id, call.idempotency_key] = call.key
        self._report(call)
        self._send(call, step.messages, cause)

    def delete(self, key: CallKey, messages: Iterable[Message], cause: str) -> None:
        """Deletes the call and sends the messages."""
        call = self._calls.pop(key)
        self._inserted.discard(key)
        self._tags.pop(key, None)
        self._tags_read.pop(key, None)
        self._send(call, messages, cause)

    def _send(self, call: ServiceCall, messages: Iterable[Message], cause: str | None) -> None:
        for message in messages:
            self._outbox.append(
                self._registry.seal(
                    message,
                    tenant_id=call.tenant_id,
                    correlation_id=call.correlation_id,
                    causation_id=cause,
                    id=self.new_id(),
                )
            )

    def _report(self, call: ServiceCall) -> None:
        lag_us = None
        if call.status is CallStatus.RUNNING:
            lag_us = max(self.now_us - max(call.awaited_at, call.submitted_at), 0)
        self.events.append(
            ServiceCallChanged(call.status.value, call.tenant_id, call.service_call_id, call.correlation_id, lag_us)
        )

    # ------------------------------------------------------------------ writing

    async def write(self) -> None:
        """Writes all changes, one statement for each kind of change. Raises ChangedMeanwhile if the database no longer
        contains what was read."""
        transaction, read, inserted = self._transaction, self._read, self._inserted
        if deleted := {key for key in read if key not in self._calls or key in inserted}:
            _demand(deleted, await transaction.delete_waiting(deleted))
        if inserted:
            fresh = [self._with_tags(call) for key, call in self._calls.items() if key in inserted]
            _demand(inserted, await transaction.insert(fresh))
        if changes := [
            Change(read[key], call)
            for key, call in self._calls.items()
            if key not in inserted and call is not read[key]
        ]:
            _demand({change.after.key for change in changes}, await transaction.change(changes))
        await self._write_tags()
        if self._outbox:
            await transaction.append(self._outbox)

    def _with_tags(self, call: ServiceCall) -> ServiceCall:
        tags = tuple(sorted(self._tags[call.key]))
        return call if call.tags == tags else msgspec.structs.replace(call, tags=tags)

    async def _write_tags(self) -> None:
        added, removed = [], []
        for key, tags in self._tags.items():
            if key not in self._inserted and key in self._calls:
                before = self._tags_read.get(key, frozenset())
                added += [(key, tag) for tag in sorted(tags - before)]
                removed += [(key, tag) for tag in sorted(before - tags)]
        if removed:
            await self._transaction.remove_tags(removed)
        if added:
            await self._transaction.add_tags(added)


def _demand(wanted: set[CallKey], written: set[CallKey]) -> None:
    if wanted != written:
        key = next(iter(wanted ^ written))
        raise ChangedMeanwhile(f"service call {key.service_call_id} was changed by another transaction")
