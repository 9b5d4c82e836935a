"""An asyncio event loop in virtual time, without I/O and threads: deterministic, and minutes take milliseconds.

Due handles run in the order (instant, order of scheduling). When nothing is ready, time advances to the next alarm. A handle
belongs to the node that the context variable `NODE` named when it was scheduled; tasks inherit it. A node can be frozen: its
handles wait until it thaws while time advances, as for a stopped process.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: The node to which scheduled handles belong; None: the simulation itself.
NODE: contextvars.ContextVar[str | None] = contextvars.ContextVar("tocsin_simulated_node", default=None)


class NothingScheduled(RuntimeError):
    """The main coroutine waits, and no handle is scheduled that could wake it."""


class TimeNotAdvancing(RuntimeError):
    """Callbacks keep scheduling one another for the same instant, so that time can't advance."""


class NoEnd(RuntimeError):
    """The main coroutine has not ended within the longest time that a run may take."""


class SimulationLoop(asyncio.AbstractEventLoop):
    """The event loop. `time()` is in seconds, begins at 0, and is exact to the microsecond.

    Errors that nobody retrieves are collected in `unhandled` instead of being logged.
    """

    def __init__(self, *, turns_per_instant_max: int = 20_000, seconds_max: float = math.inf) -> None:
        self.unhandled: list[dict[str, Any]] = []
        self.steps = 0
        self._now_us = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._alarms: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._scheduled = 0
        self._frozen: dict[str, list[asyncio.Handle]] = {}
        self._running = False
        self._closed = False
        self._turns_per_instant_max = turns_per_instant_max
        self._seconds_max = seconds_max
        self._turns = 0

    # ------------------------------------------------------------------ time and scheduling

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._now_us / 1e6

    def now_us(self) -> int:
        """The virtual time in microseconds."""
        return self._now_us

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Schedules a callback for the present instant."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedules a callback after `delay` seconds, rounded up to whole microseconds."""
        return self._at(self._now_us + max(-int(-delay * 1e6 // 1), 0), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedules a callback at `when`, in virtual seconds."""
        return self._at(round(when * 1e6), callback, args, context)

    def _at(
        self, when_us: int, callback: Callable[..., object], args: Any, context: contextvars.Context | None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when_us / 1e6, callback, args, self, context)
        self._scheduled += 1
        heappush(self._alarms, (when_us, self._scheduled, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Does nothing: cancelled handles are skipped when they are due."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Creates a task. Tasks are named by number, so that their names are the same in every run."""
        self._scheduled += 1
        return asyncio.Task(coro, loop=self, name=name or f"task-{self._scheduled}", context=context)

    # ------------------------------------------------------------------ freezing

    def freeze(self, node: str) -> None:
        """Has the node's handles wait from now on."""
        self._frozen.setdefault(node, [])

    def thaw(self, node: str) -> None:
        """Resumes the node: all its waiting handles become ready, in order."""
        self._ready.extend(self._frozen.pop(node, ()))

    # ------------------------------------------------------------------ running

    def run_until_complete(self, future: Coroutine[Any, Any, T]) -> T:  # type: ignore[override]
        """Runs the coroutine to its end. Raises NothingScheduled if it waits and nothing can wake it, TimeNotAdvancing after
        `turns_per_instant_max` turns at one instant, NoEnd after `seconds_max` of virtual time."""
        main = self.create_task(future)
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not main.done():
                self._turn()
            return main.result()
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def _turn(self) -> None:
        ready, alarms = self._ready, self._alarms
        if not ready:
            while alarms and alarms[0][2]._cancelled:
                heappop(alarms)
            if not alarms:
                raise NothingScheduled("no callback is ready and no alarm is set")
            if alarms[0][0] > self._seconds_max * 1e6:
                raise NoEnd(f"no end after {self._seconds_max:g} s")
            if alarms[0][0] > self._now_us:
                self._now_us = alarms[0][0]
                self._turns = 0
        self._turns += 1
        if self._turns > self._turns_per_instant_max:
            raise TimeNotAdvancing(f"{self._turns} turns at {self.time()} s")
        while alarms and alarms[0][0] <= self._now_us:
            ready.append(heappop(alarms)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._frozen:
                node = handle._context.get(NODE)  # type: ignore[attr-defined]
                if node in self._frozen:
                    self._frozen[node].append(handle)
                    continue
            self.steps += 1
            handle._run()

    def is_running(self) -> bool:
        """Whether `run_until_complete` is running."""
        return self._running

    def is_closed(self) -> bool:
        """Whether the loop is closed."""
        return self._closed

    def close(self) -> None:
        """Drops all scheduled handles."""
        self._closed = True
        self._ready.clear()
        self._alarms.clear()
        self._frozen.clear()

    def get_debug(self) -> bool:
        """False: there is no debug mode."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Remembers it in `unhandled`."""
        self.unhandled.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Remembers it in `unhandled`."""
        self.unhandled.append(context)
