"""Acts on overdue calls and deletes calls that finished longer ago than the retention time."""

from __future__ import annotations

from tocsin.service_calls.background import Periodic
from tocsin.service_calls.context import AgentContext
from tocsin.service_calls.events import AgentRowsPurged, CallRescued
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.orchestration.ports import ServiceCallStore
from tocsin.service_calls.orchestration.service_call import WAITING, ServiceCall
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact


class Watchdog:
    """Runs two loops: every `watchdog_interval` for overdue calls, every `purge_interval` for retention."""

    def __init__(self, store: ServiceCallStore, context: AgentContext) -> None:
        self._store = store
        self._context = context
        limits = context.limits
        self._checking = Periodic(
            "watchdog", self.check, context, limits.watchdog_interval_us, limits.watchdog_grace_us
        )
        self._purging = Periodic("call purge", self.purge, context, limits.purge_interval_us)

    def start(self) -> None:
        """Starts both loops. The first check comes after `watchdog_grace`: the timer and execution modules report first
        what fell due or was interrupted while no agent ran."""
        self._checking.start()
        self._purging.start()

    async def close(self) -> None:
        """Returns when the current transactions have ended. Idempotent."""
        await self._checking.close()
        await self._purging.close()

    async def check(self) -> int:
        """Acts on every call that is overdue now. Returns their number. Raises the store's errors."""
        rescued = 0
        while not self._checking.closing:
            checked, acted_on = await transact(self._store, self._context, self._check)
            rescued += acted_on
            if checked < self._context.limits.watchdog_batch_max or not acted_on:
                break
        return rescued

    def _check(self, unit: UnitOfWork) -> tuple[int, int]:
        limits, acted_on = self._context.limits, 0
        calls = unit.load_overdue(limits.watchdog_batch_max)
        for call in calls:
            step = service_call.watch(call, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
            if step is not None:
                # No message caused it.
                unit.take(call.key, step, None)
                unit.events.append(_rescued(call, unit.now_us))
                acted_on += 1
        return len(calls), acted_on

    async def purge(self) -> int:
        """Deletes the calls that finished longer ago than `retention`. Returns their number. Raises the store's errors."""
        limits, purged = self._context.limits, 0
        before_us = self._context.clock.now_us() - limits.retention_us
        while not self._purging.closing:
            rows = await self._store.transact(lambda transaction: transaction.purge(before_us, limits.purge_batch_max))
            purged += rows
            if rows < limits.purge_batch_max:
                break
        if purged:
            self._context.observe(AgentRowsPurged("calls", purged))
        return purged


def _rescued(before: ServiceCall, now_us: int) -> CallRescued:
    since = before.watch_at or now_us
    if before.status in WAITING:
        action, since = "dispatched", before.awaited_at
    elif before.started_at is not None:
        action = "checked"
    else:
        action = "repeated"
    return CallRescued(action, before.tenant_id, before.service_call_id, before.correlation_id, now_us - since)
