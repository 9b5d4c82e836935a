"""Schedules kept as timers of the timer service in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import msgspec

from tocsin.model.errors import NamespaceExists, TimerNotFound, TimerNotPending, TocsinError
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Timer
from tocsin.ports.clock import Clock
from tocsin.service_calls.adapters.agent_caller import DUE_URL, AgentCaller, DuePayload, read_payload
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.timer.ports import OnDue, TimerEntry
from tocsin.timers.service import TimerService

#: The namespace of the agent's timers. Its name is reserved.
NAMESPACE = "tocsin.agent"
#: Practically unlimited attempts: the service call waits for its timer.
_RETRY = RetryPolicy(max_attempts=1_000_000, initial_interval_us=200_000, max_interval_us=30_000_000)
#: How long publishing a due time may take; the longest timeout that the timer service accepts by default.
_PUBLISH_TIMEOUT_US = 60_000_000

_encode = msgspec.json.Encoder().encode


class EngineTimers:
    """Implements `Timers` with a `TimerService` whose engine invokes timers through the given `AgentCaller`.

    A timer that has fired corresponds to the state Reached of a table: while the timer service keeps it, only a later
    instant makes it pending again. `schedule` and `cancel` raise the timer service's errors.
    """

    def __init__(self, service: TimerService, caller: AgentCaller, clock: Clock, limits: AgentLimits) -> None:
        self._service = service
        self._caller = caller
        self._clock = clock
        self._limits = limits
        self._ready = False

    async def start(self, on_due: OnDue) -> None:
        """Starts accepting invocations. Earlier ones were refused, and the engine retries them."""
        await self._ensure_namespace()
        self._caller.listen(on_due)

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """Creates the timers, or moves existing ones to a later instant."""
        await self._ensure_namespace()
        wanted = {_timer_id(entry.key): entry for entry in entries}
        present = await self._service.get_many(NAMESPACE, wanted)
        now_us = self._clock.now_us()
        timers = []
        for timer_id, entry in wanted.items():
            found = present.get(timer_id)
            if found is None:
                timers.append(_timer(timer_id, entry, now_us))
            elif (before := _payload_of(found.timer)) is None or before.due_at_us < entry.due_at:
                # This also replaces a timer whose payload cannot be read.
                registered_at = entry.registered_at if before is None else before.registered_at_us
                timers.append(_timer(timer_id, entry._replace(registered_at=registered_at), now_us))
        for result in await self._service.create_many(timers):
            if isinstance(result, TocsinError):
                raise result

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """Deletes the timers that are pending."""
        await self._ensure_namespace()
        outcomes = await asyncio.gather(
            *(self._service.delete(NAMESPACE, _timer_id(key)) for key in keys), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, TimerNotFound | TimerNotPending):
                raise outcome

    async def close(self) -> None:
        """Refuses invocations from now on. Idempotent."""
        await self._caller.ignore()

    async def _ensure_namespace(self) -> None:
        if self._ready:
            return
        if NAMESPACE not in {namespace.name for namespace in await self._service.namespaces()}:
            try:
                retention_us = self._limits.outbox_retention_us
                await self._service.create_namespace(NAMESPACE, retention_us=retention_us, reserved=True)
            except NamespaceExists:
                # Another node created it at the same time.
                await self._service.namespaces()
        self._ready = True


def _timer_id(key: CallKey) -> str:
    return f"{key.tenant_id}:{key.service_call_id}"


def _payload_of(timer: Timer) -> DuePayload | None:
    try:
        return read_payload(timer.payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _timer(timer_id: str, entry: TimerEntry, now_us: int) -> Timer:
    payload = DuePayload(
        entry.tenant_id, entry.service_call_id, entry.correlation_id, entry.due_at, entry.registered_at
    )
    return Timer(
        namespace=NAMESPACE,
        id=timer_id,
        execute_at=entry.due_at,
        url=DUE_URL,
        created_at=now_us,
        updated_at=now_us,
        payload=msgspec.Raw(_encode(payload)),
        retry=_RETRY,
        timeout_us=_PUBLISH_TIMEOUT_US,
    )
