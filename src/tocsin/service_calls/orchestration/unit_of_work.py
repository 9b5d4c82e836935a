"""The unit of work of one transaction over several messages: each call is loaded once and written once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec

from tocsin.model.envelope import Envelope
from tocsin.model.errors import DefiniteFailure
from tocsin.model.uuid7 import Uuid7Source
from tocsin.service_calls.events import AgentEvent, ServiceCallChanged
from tocsin.service_calls.messages import CallKey, Message, Registry
from tocsin.service_calls.orchestration.ports import Change, ServiceCallStore, Transaction
from tocsin.service_calls.orchestration.service_call import ServiceCall, Status, Step

T = TypeVar("T")

#: How often a transaction is repeated because another one changed the same calls between its read and its write.
_CONFLICTS_MAX = 3


class ChangedMeanwhile(DefiniteFailure):
    """Another transaction changed a call after this one had read it. Nothing was written; the work may be repeated."""


async def transact(store: ServiceCallStore, work: Callable[[Transaction], T]) -> T:
    """Calls `store.transact`, and repeats it from the start after ChangedMeanwhile, a limited number of times."""
    for _ in range(_CONFLICTS_MAX):
        try:
            return await store.transact(work)
        except ChangedMeanwhile:
            continue
    return await store.transact(work)


class UnitOfWork:
    """The calls of one transaction in their current state, and the messages and events that result from their changes.

    It runs on the database's thread and therefore has an id source of its own: the process's id source is not
    thread-safe. Emit `events` after the transaction has committed.
    """

    def __init__(self, transaction: Transaction, registry: Registry, now_us: int) -> None:
        self.now_us = now_us
        self.new_id: Callable[[], str] = Uuid7Source(lambda: now_us)
        self.events: list[AgentEvent] = []
        self._transaction = transaction
        self._registry = registry
        self._loaded: dict[CallKey, ServiceCall] = {}
        self._calls: dict[CallKey, ServiceCall] = {}
        self._changed: set[CallKey] = set()
        self._inserted: set[CallKey] = set()
        self._deleted: set[CallKey] = set()
        self._tags_loaded: dict[CallKey, frozenset[str]] = {}
        self._tags: dict[CallKey, set[str]] = {}
        self._outbox: list[Envelope] = []

    # ------------------------------------------------------------------ reading

    def load(self, keys: Collection[CallKey]) -> None:
        """Reads these calls."""
        if keys:
            self.adopt(self._transaction.load(keys).values())

    def adopt(self, calls: Iterable[ServiceCall]) -> None:
        """Registers calls that this transaction has read. Calls that are registered already keep their current state."""
        for call in calls:
            if self._loaded.setdefault(call.key, call) is call:
                self._calls[call.key] = call

    def load_tags(self, keys: Collection[CallKey]) -> None:
        """Reads the tags of these calls."""
        if keys:
            for key, tags in self._transaction.tags(keys).items():
                self._tags_loaded[key] = frozenset(tags)
                self._tags[key] = set(tags)

    def get(self, key: CallKey) -> ServiceCall | None:
        """The call in its current state; None if it does not exist or was deleted."""
        return self._calls.get(key)

    def tags(self, key: CallKey) -> set[str]:
        """The call's tags, to be changed in place."""
        return self._tags.setdefault(key, set())

    # ------------------------------------------------------------------ changing

    def take(self, key: CallKey, step: Step, cause: str | None) -> None:
        """Applies a step to an existing call. `cause` is the id of the message that caused it."""
        before = self._calls[key]
        self._calls[key] = step.after
        if key not in self._inserted:
            self._changed.add(key)
        if before.status is not step.after.status:
            self._report(step.after)
        self.send(step.after, step.messages, cause)

    def insert(self, step: Step, cause: str) -> None:
        """Adds a new call by its first step."""
        key = step.after.key
        self._calls[key] = step.after
        self._inserted.add(key)
        self._tags[key] = set(step.after.tags)
        self._report(step.after)
        self.send(step.after, step.messages, cause)

    def delete(self, key: CallKey, messages: Iterable[Message], cause: str) -> None:
        """Deletes the call and sends the messages."""
        call = self._calls.pop(key)
        self._tags.pop(key, None)
        self._tags_loaded.pop(key, None)
        self._changed.discard(key)
        if key in self._inserted:
            self._inserted.discard(key)
        else:
            self._deleted.add(key)
        self.send(call, messages, cause)

    def send(self, call: ServiceCall, messages: Iterable[Message], cause: str | None) -> None:
        """Queues messages about a call for the outbox."""
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
        if call.status is Status.RUNNING:
            lag_us = max(self.now_us - max(call.awaited_at, call.submitted_at), 0)
        self.events.append(
            ServiceCallChanged(call.status.value, call.tenant_id, call.service_call_id, call.correlation_id, lag_us)
        )

    # ------------------------------------------------------------------ writing

    def write(self) -> None:
        """Writes all changes, one statement for each kind of change. Raises ChangedMeanwhile if the database no longer
        contains what was read."""
        transaction = self._transaction
        if self._deleted:
            _demand(self._deleted, transaction.delete_waiting(self._deleted))
        if self._inserted:
            fresh = [self._with_tags(key) for key in self._calls if key in self._inserted]
            _demand(self._inserted, transaction.insert(fresh))
        if self._changed:
            changes = [Change(self._loaded[key], self._calls[key]) for key in self._calls if key in self._changed]
            _demand(self._changed, transaction.change(changes))
        self._write_tags()
        if self._outbox:
            transaction.append(self._outbox)

    def _with_tags(self, key: CallKey) -> ServiceCall:
        call, tags = self._calls[key], tuple(sorted(self._tags[key]))
        return call if call.tags == tags else msgspec.structs.replace(call, tags=tags)

    def _write_tags(self) -> None:
        added, removed = [], []
        for key, tags in self._tags.items():
            if key not in self._inserted and key in self._calls:
                before = self._tags_loaded.get(key, frozenset())
                added += [(key, tag) for tag in sorted(tags - before)]
                removed += [(key, tag) for tag in sorted(before - tags)]
        if removed:
            self._transaction.remove_tags(removed)
        if added:
            self._transaction.add_tags(added)


def _demand(wanted: set[CallKey], written: set[CallKey]) -> None:
    if wanted != written:
        key = next(iter(wanted ^ written))
        raise ChangedMeanwhile(f"service call {key.service_call_id} was changed by another transaction")
