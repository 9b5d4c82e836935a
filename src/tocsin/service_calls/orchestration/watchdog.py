"""Acts on overdue calls and deletes calls that finished longer ago than the retention time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tocsin.ports.clock import Clock
from tocsin.service_calls.alarm import Alarm
from tocsin.service_calls.events import AgentEvent, AgentObserver, AgentRowsPurged, AgentStepFailed, CallRescued
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import Registry
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.orchestration.ports import ServiceCallStore, Transaction
from tocsin.service_calls.orchestration.service_call import WAITING, ServiceCall
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact


class Watchdog:
    """Runs two loops: every `watchdog_interval` for overdue calls, every `purge_interval` for retention. A round that
    fails is reported and does not affect the next one."""

    def __init__(
        self,
        store: ServiceCallStore,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._closing = False
        self._alarms: list[Alarm] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts both loops. The first check comes after `watchdog_grace`: the timer and execution modules report first
        what fell due or was interrupted while no agent ran."""
        limits = self._limits
        self._run("watchdog", limits.watchdog_grace_us, limits.watchdog_interval_us, self.check)
        self._run("call purge", limits.purge_interval_us, limits.purge_interval_us, self.purge)

    async def close(self) -> None:
        """Returns when the current transactions have ended. Idempotent."""
        self._closing = True
        for alarm in self._alarms:
            alarm.wake()
        await asyncio.gather(*self._tasks)
        self._tasks.clear()

    def _run(self, step: str, first_us: int, interval_us: int, work: Callable[[], Awaitable[int]]) -> None:
        alarm = Alarm()
        self._alarms.append(alarm)
        self._tasks.append(asyncio.create_task(self._repeat(step, alarm, first_us, interval_us, work)))

    async def _repeat(
        self, step: str, alarm: Alarm, pause_us: int, interval_us: int, work: Callable[[], Awaitable[int]]
    ) -> None:
        while not self._closing:
            await alarm.wait(pause_us)
            pause_us = interval_us
            if self._closing:
                return
            try:
                await work()
            except Exception as error:  # noqa: BLE001 -- the next round has to run whatever fails in this one
                self._observe(AgentStepFailed(step, f"{type(error).__name__}: {error}"))

    # ------------------------------------------------------------------ overdue calls

    async def check(self) -> int:
        """Acts on every call that is overdue now. Returns their number. Raises the store's errors."""
        rescued = 0
        while not self._closing:
            checked, events = await transact(self._store, self._check)
            for event in events:
                self._observe(event)
            rescued += sum(isinstance(event, CallRescued) for event in events)
            if checked < self._limits.watchdog_batch_max or not events:
                break
        return rescued

    def _check(self, transaction: Transaction) -> tuple[int, list[AgentEvent]]:
        now_us = self._clock.now_us()
        unit = UnitOfWork(transaction, self._registry, now_us)
        calls = transaction.to_watch(now_us, self._limits.watchdog_batch_max)
        unit.adopt(calls)
        for call in calls:
            step = service_call.watch(call, now_us=now_us, new_id=unit.new_id, limits=self._limits)
            if step is not None:
                # No message caused it.
                unit.take(call.key, step, None)
                unit.events.append(_rescued(call, now_us))
        unit.write()
        return len(calls), unit.events

    # ------------------------------------------------------------------ retention

    async def purge(self) -> int:
        """Deletes the calls that finished longer ago than `retention`. Returns their number. Raises the store's errors."""
        limits, purged = self._limits, 0
        before_us = self._clock.now_us() - limits.retention_us

        def work(transaction: Transaction) -> int:
            return transaction.purge(before_us, limits.purge_batch_max)

        while not self._closing:
            rows = await self._store.transact(work)
            purged += rows
            if rows < limits.purge_batch_max:
                break
        if purged:
            self._observe(AgentRowsPurged("calls", purged))
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
