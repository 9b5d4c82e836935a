"""What the timer module asks of the world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.agent.messages import CallKey


class TimerEntry(NamedTuple):
    """One schedule. `reached_at` None: it waits (state Scheduled); else it is Reached. Instants in microseconds."""

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
    """The table `timer_schedules`. Every query but those over `due_at` alone leads with the tenant. All raise StoreError."""

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        """Adds schedules. One that is there, waiting or Reached, is replaced by a later one and waits then; an entry that is
        not later is a repetition and changes nothing. Entries whose call no longer exists are dropped, and take no other
        along."""

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        """Removes schedules; what isn't there is fine."""

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        """Tenants that have schedules waiting with `due_at` from `from_us` to `now_us`, both included, those with the
        earliest first."""

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        """These tenants' waiting schedules with `due_at` from `from_us` to `now_us`, both included, in due order; nothing
        of any other tenant."""

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        """From Scheduled to Reached, each of these calls with this `due_at`; returns how many were. What is Reached already,
        gone, or waits for a later instant by now, is left alone."""

    async def next_due_at(self, after_us: int) -> int | None:
        """The earliest `due_at` later than `after_us` that waits, of any tenant."""


#: Told which schedules are due; when it returns, they have been published, and what it raises makes them come again.
OnDue = Callable[[Sequence[TimerEntry]], Awaitable[None]]


class Timers(Protocol):
    """Keeps schedules and tells when they are due, at least once, never early: by polling a table, or by a timer engine."""

    async def start(self, on_due: OnDue) -> None:
        """Begins to tell, also of what was due while nobody looked."""

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """As TimerStore.schedule_timers; durable when it returns."""

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """As TimerStore.delete_timers."""

    async def close(self) -> None:
        """Tells nothing more. Idempotent."""
