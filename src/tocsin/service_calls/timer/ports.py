"""The ports of the timer module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.service_calls.messages import CallKey


class TimerEntry(NamedTuple):
    """One schedule. `reached_at` None: it is waiting (state Scheduled); otherwise its state is Reached. Instants in
    microseconds."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    due_at: int
    registered_at: int
    reached_at: int | None = None

    @property
    def key(self) -> CallKey:
        """Tenant and service call."""
        return CallKey(self.tenant_id, self.service_call_id)


class TimerStore(Protocol):
    """The table `timer_schedules`. Every query except those over `due_at` alone starts with the tenant. All methods
    raise StoreError."""

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        """Adds schedules. An existing one, Scheduled or Reached, is replaced by a later one and becomes Scheduled; an
        entry that is not later is a repetition and changes nothing. Entries whose call no longer exists are ignored
        without affecting the others."""

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        """Deletes schedules. A schedule that does not exist is ignored."""

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        """Tenants with waiting schedules whose `due_at` is from `from_us` to `now_us`, both inclusive, ordered by their
        earliest."""

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        """The waiting schedules of these tenants whose `due_at` is from `from_us` to `now_us`, both inclusive, in order
        of `due_at`."""

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        """Marks schedules with these calls and `due_at` as Reached. Returns how many changed. A schedule that is
        Reached, was deleted or waits for a later instant stays as it is."""

    async def next_due_at(self, after_us: int) -> int | None:
        """The earliest waiting `due_at` later than `after_us`, of any tenant."""


#: Called with schedules that are due. They are published when it returns; if it raises, they are passed to it again.
OnDue = Callable[[Sequence[TimerEntry]], Awaitable[None]]


class Timers(Protocol):
    """Keeps schedules and reports when they are due, at least once and never early: by polling a table or by a timer
    engine."""

    async def start(self, on_due: OnDue) -> None:
        """Starts reporting, including schedules that fell due before."""

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """Adds schedules or moves them to a later instant, with the rules of TimerStore.schedule_timers. Durable when
        it returns."""

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """Removes schedules. A schedule that does not exist is ignored."""

    async def close(self) -> None:
        """Stops reporting. Idempotent."""
