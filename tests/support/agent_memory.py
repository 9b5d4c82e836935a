"""In-memory implementations of the agent's database ports, for tests of the modules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from tests.support.patience import PATIENCE_S
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.ports import WAITING, Change, OutboxRow, Readable, ServiceCall, TimerEntry, Transaction

T = TypeVar("T")


@dataclass
class MemoryTables:
    """All tables. The next calls raise the errors in `fail_next`, one each; `listeners` are those of the outbox."""

    calls: dict[CallKey, ServiceCall] = field(default_factory=dict)
    tags: dict[CallKey, set[str]] = field(default_factory=dict)
    outbox: list[OutboxRow] = field(default_factory=list)
    published: dict[int, int] = field(default_factory=dict)
    suspended: dict[int, str] = field(default_factory=dict)
    failures: dict[int, tuple[int, str]] = field(default_factory=dict)
    fail_next: list[Exception] = field(default_factory=list)
    reported: list[Callable[[Sequence[OutboxRow]], None]] = field(default_factory=list)
    #: The outbox's listeners for commits with an unknown outcome.
    notified: list[Callable[[Sequence[OutboxRow]], None]] = field(default_factory=list)
    #: The number of committed transactions.
    commits: int = 0
    #: Called between the reads and the writes of a transaction.
    before_change: Callable[[], None] | None = None
    notify: bool = True

    def raise_next(self) -> None:
        """Raises the next error of `fail_next`."""
        if self.fail_next:
            raise self.fail_next.pop(0)

    def append(self, envelopes: Sequence[Envelope]) -> list[OutboxRow]:
        """Appends to the outbox in its own transaction."""
        first = len(self.outbox) + 1
        rows = [OutboxRow(first + position, envelope) for position, envelope in enumerate(envelopes)]
        self.outbox.extend(rows)
        if self.notify:
            for reported in self.reported:
                reported(rows)
        return rows

    def messages(self, key: CallKey | None = None) -> list[Envelope]:
        """All messages ever appended to the outbox, of one call or of all."""
        return [row.envelope for row in self.outbox if key is None or row.envelope.aggregate_id == key.service_call_id]


class MemoryServiceCalls:
    """Implements `ServiceCallStore`."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def transact(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        await asyncio.sleep(0)
        self._tables.raise_next()
        transaction = _MemoryTransaction(self._tables)
        result = await work(transaction)
        self._tables.calls, self._tables.tags = transaction.calls, transaction.all_tags
        self._tables.commits += 1
        if transaction.appended:
            self._tables.append(transaction.appended)
        return result


class _MemoryTransaction:
    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self.calls = dict(tables.calls)
        self.all_tags = {key: set(tags) for key, tags in tables.tags.items()}
        self.appended: list[Envelope] = []

    async def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        return {key: msgspec.structs.replace(self.calls[key], tags=()) for key in keys if key in self.calls}

    async def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        return {
            (call.tenant_id, call.idempotency_key): call
            for call in self.calls.values()
            if call.idempotency_key is not None and (call.tenant_id, call.idempotency_key) in keys
        }

    async def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        added = set()
        for call in calls:
            taken = call.idempotency_key is not None and await self.find_by_idempotency_key(
                [(call.tenant_id, call.idempotency_key)]
            )
            if call.key not in self.calls and not taken:
                self.calls[call.key] = call
                self.all_tags[call.key] = set(call.tags)
                added.add(call.key)
        return added

    async def change(self, changes: Sequence[Change]) -> set[CallKey]:
        if self._tables.before_change is not None:
            self._tables.before_change()
            self.calls = dict(self._tables.calls)
        written = set()
        for before, after in changes:
            present = self.calls.get(before.key)
            if present is not None and (present.status, present.execution_id) == (before.status, before.execution_id):
                self.calls[before.key] = after
                written.add(before.key)
        return written

    async def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        gone = {key for key in keys if key in self.calls and self.calls[key].status in WAITING}
        for key in gone:
            del self.calls[key]
            self.all_tags.pop(key, None)
        return gone

    async def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        return {key: tuple(sorted(self.all_tags[key])) for key in keys if self.all_tags.get(key)}

    async def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        for key, tag in tags:
            if key in self.calls:
                self.all_tags.setdefault(key, set()).add(tag)

    async def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        for key, tag in tags:
            self.all_tags.get(key, set()).discard(tag)

    async def to_watch(self, now_us: int, limit: int) -> Readable[ServiceCall]:
        overdue = [call for call in self.calls.values() if call.watch_at is not None and call.watch_at <= now_us]
        return Readable(sorted(overdue, key=lambda call: call.watch_at or 0)[:limit])

    async def postpone(self, keys: Collection[CallKey], watch_at_us: int) -> None:
        for key in keys:
            self.calls[key] = msgspec.structs.replace(self.calls[key], watch_at=watch_at_us)

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        old = [
            key
            for key, call in self.calls.items()
            if call.finished_at is not None and call.finished_at < now_us - kept_us
        ][:limit]
        for key in old:
            del self.calls[key]
        return len(old)

    async def append(self, envelopes: Sequence[Envelope]) -> None:
        self.appended.extend(envelopes)


class MemoryOutbox:
    """Implements `OutboxStore`. `marked` is set whenever a row is marked."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self.marked = asyncio.Condition()
        self.pages = 0

    def on_appended(self, reported: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._tables.reported.append(reported)

    def on_unknown(self, notified: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._tables.notified.append(notified)

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        self.pages += 1
        tables = self._tables
        found = [
            row
            for row in tables.outbox
            if row.number > after and row.number not in tables.published and row.number not in tables.suspended
        ][:limit]
        await asyncio.sleep(0)
        tables.raise_next()
        return found

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        await asyncio.sleep(0)
        self._tables.raise_next()
        self._tables.published.update(dict.fromkeys(numbers, at_us))
        await self._notify()

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        await asyncio.sleep(0)
        self._tables.failures[number] = (attempts, error)

    async def suspend(self, number: int, error: str, at_us: int, then: Envelope | None = None) -> None:
        await asyncio.sleep(0)
        self._tables.raise_next()
        self._tables.suspended[number] = error
        if then is not None:
            self._tables.append([then])
        await self._notify()

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        published = self._tables.published
        old = [number for number, at_us in published.items() if at_us < now_us - kept_us][:limit]
        self._tables.outbox = [row for row in self._tables.outbox if row.number not in old]
        for number in old:
            del published[number]
        return len(old)

    async def all_settled(self, timeout_s: float = PATIENCE_S) -> None:
        """Returns when every row is published or suspended."""
        async with asyncio.timeout(timeout_s), self.marked:
            await self.marked.wait_for(
                lambda: len(self._tables.published) + len(self._tables.suspended) >= len(self._tables.outbox)
            )

    async def _notify(self) -> None:
        async with self.marked:
            self.marked.notify_all()


class MemoryTimerStore:
    """Implements `TimerStore`. The next calls raise the errors in `fail_next`, one each."""

    def __init__(self) -> None:
        self.entries: dict[CallKey, TimerEntry] = {}
        self.fail_next: list[Exception] = []
        self.queries = 0

    async def _enter(self) -> None:
        self.queries += 1
        await asyncio.sleep(0)
        if self.fail_next:
            raise self.fail_next.pop(0)

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        await self._enter()
        for entry in entries:
            present = self.entries.get(entry.key)
            if present is None:
                self.entries[entry.key] = entry
            elif present.due_at < entry.due_at:
                self.entries[entry.key] = entry._replace(registered_at=present.registered_at)

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        await self._enter()
        for key in keys:
            self.entries.pop(key, None)

    def _waiting(self) -> list[TimerEntry]:
        return sorted((e for e in self.entries.values() if e.reached_at is None), key=lambda entry: entry.due_at)

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        await self._enter()
        return list(dict.fromkeys(e.tenant_id for e in self._waiting() if from_us <= e.due_at <= now_us))[:limit]

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        await self._enter()
        return [e for e in self._waiting() if e.tenant_id in tenant_ids and from_us <= e.due_at <= now_us][:limit]

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        await self._enter()
        entries = self.entries
        waiting = [
            key
            for key, due_at in fired
            if key in entries and entries[key].reached_at is None and entries[key].due_at == due_at
        ]
        for key in waiting:
            self.entries[key] = self.entries[key]._replace(reached_at=reached_at_us)
        return len(waiting)

    async def next_due_at(self, after_us: int) -> int | None:
        await self._enter()
        return min((entry.due_at for entry in self._waiting() if entry.due_at > after_us), default=None)
