"""Namespaces that are paused, and how many of their timers wait: asked for while somebody looks at the overview."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tocsin.model.errors import Unavailable
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.service import ListRequest, TimerService
from tocsin.ui.show import count

#: Timers of a namespace that are counted; beyond it a page says "or more". Each costs a row that is read.
COUNTED_MAX = 500
#: How often the store is asked, at most, however many look.
_ASK_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class Counted:
    """How many timers, and whether there are more."""

    timers: int
    more: bool = False

    def __str__(self) -> str:
        plain = f"{count(self.timers)}{' or more' if self.more else ''}"
        return f"{plain} {'timer' if self.timers == 1 and not self.more else 'timers'}"


@dataclass(frozen=True, slots=True)
class PausedNamespace:
    """A paused namespace, and its timers that are due."""

    name: str
    waiting: Counted


async def count_due(service: TimerService, namespace: str, before_us: int) -> Counted:
    """The namespace's pending timers that are due before an instant."""
    views, cursor = await service.list(
        ListRequest(
            namespace, statuses=frozenset({Status.PENDING}), execute_before=before_us, limit=COUNTED_MAX, reads_max=2
        )
    )
    return Counted(len(views), cursor is not None)


class Paused:
    """What is paused, as it was a few seconds ago."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._asking: asyncio.Task[None] | None = None
        self._asked_at_s: float | None = None
        self.namespaces: list[PausedNamespace] = []

    async def refresh(self) -> None:
        """Asks the store, unless that was done a moment ago; whoever comes meanwhile waits for the same answer. While the
        store does not answer, what it said last stays: that it doesn't is said elsewhere."""
        if self._asking is None or self._asking.done():
            now_s = asyncio.get_running_loop().time()
            if self._asked_at_s is not None and now_s - self._asked_at_s < _ASK_INTERVAL_S:
                return
            self._asked_at_s = now_s
            self._asking = asyncio.ensure_future(self._ask())
        await asyncio.wait([self._asking])
        if not self._asking.cancelled():
            self._asking.result()

    async def close(self) -> None:
        """Asks no more. Idempotent."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        try:
            names = [each.name for each in await self._service.namespaces() if each.paused]
            now_us = self._clock.now_us()
            self.namespaces = [PausedNamespace(name, await count_due(self._service, name, now_us)) for name in names]
        except Unavailable:
            return
