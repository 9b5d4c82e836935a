"""The clock of `tocsin dev`: moves it, and waits for what falls due."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from tocsin.model.errors import ClockHalted, FieldError, InvalidInput, Unavailable
from tocsin.model.instants import US_PER_DAY, format_duration, format_instant
from tocsin.ports.clock import AdvanceMode, ClockReading
from tocsin.server.dev_folder import DevFolder
from tocsin.server.engine import Engine
from tocsin.settings import Settings
from tocsin.telemetry.clock import ConfirmedClock, MovableClock, SystemClock
from tocsin.timers.engine.supervisor import EngineRest

if TYPE_CHECKING:
    from tocsin.server.agent import ServiceAgent

#: Instants at which one call halts. A timer that is rescheduled by a second would otherwise take hours to get to next month.
STEPS_MAX = 10_000
#: How far the clock may be ahead: as far as timers may be.
AHEAD_US_MAX = 100 * 366 * US_PER_DAY
#: How long the slowest receiver's answer, and what follows from it, may take beyond the time-out of a request.
_REST_MARGIN_US = 10_000_000
#: Not every change of the agent is an event: so long after the last one, it is asked again.
_RECHECK_S = 0.1


class DevClock:
    """Implements `tocsin.ports.clock.ClockMover`. `clock` is the node's; `observe` is to get the events of engine and
    agent, each of which may be the one that brings them to rest."""

    def __init__(
        self, folder: DevFolder, settings: Settings, *, steps_max: int = STEPS_MAX, patience_us: int | None = None
    ) -> None:
        """`patience_us`: how long to wait at one instant; longer than any receiver may take, unless given."""
        machine = SystemClock()
        self.folder = folder
        self.clock = MovableClock(machine, folder.offset_us)
        #: The machine's own clock, for what other machines check.
        self.real = machine
        longest_us = max(settings.input.callback_timeout_max_us, settings.agent.request_timeout_us)
        self._patience_us = longest_us + _REST_MARGIN_US if patience_us is None else patience_us
        self._steps_max = steps_max
        self._engine: Engine
        self._rest: EngineRest
        self._confirmed: ConfirmedClock
        self._agent: ServiceAgent | None = None
        self._one = asyncio.Lock()
        self._changed = asyncio.Event()
        self._closed = False

    def attach(self, engine: Engine, confirmed: ConfirmedClock, agent: ServiceAgent | None) -> None:
        """What goes by the clock. Call it once, before `advance`."""
        self._engine, self._confirmed, self._agent = engine, confirmed, agent
        self._rest = EngineRest(engine.context, engine.supervisor)

    def observe(self, event: object) -> None:
        """Something happened."""
        self._changed.set()

    def close(self) -> None:
        """Ends a call of `advance` that is under way."""
        self._closed = True
        self._changed.set()

    def read(self) -> ClockReading:
        """The clock's present state."""
        return ClockReading(self.clock.now_us(), self.clock.offset_us)

    async def advance(
        self, mode: AdvanceMode, *, by_us: int | None = None, to_us: int | None = None
    ) -> tuple[ClockReading, int]:
        """Moves the clock; one call at a time, the others wait."""
        async with self._one:
            target_us = self._target(by_us, to_us)
            steps = 0
            if mode is AdvanceMode.STEP:
                steps = await self._step_to(target_us)
            await self._set(target_us)
            return self.read(), steps

    def _target(self, by_us: int | None, to_us: int | None) -> int:
        """The instant asked for. Raises InvalidInput."""
        now_us = self.clock.now_us()
        target_us = now_us + (by_us or 0) if to_us is None else to_us
        field = "by" if to_us is None else "to"
        if target_us < now_us:
            reason = f"has passed: the clock shows {self._shown()} and only moves forward"
            raise InvalidInput(FieldError(field, reason))
        if target_us - self.real.now_us() > AHEAD_US_MAX:
            reason = f"is too far: the clock can be at most {format_duration(AHEAD_US_MAX)} ahead of the machine's"
            raise InvalidInput(FieldError(field, reason))
        return target_us

    async def _step_to(self, target_us: int) -> int:
        """Halts at each instant up to the target at which something is due. Returns their number."""
        steps = 0
        done_us = await self._at_rest(steps)
        self._rest.acted_us = done_us
        while (due_us := await self._next_due_us(done_us)) is not None and due_us <= target_us:
            if steps == self._steps_max:
                raise self._halted(steps, f"more is due before {format_instant(target_us)}; advance again to go on")
            await self._set(due_us)
            steps += 1
            done_us = await self._at_rest(steps)
        return steps

    async def _set(self, at_us: int) -> None:
        """Sets the clock to an instant, unless it has come by itself. Durable first: after a crash the clock must not show an
        instant before one that it has shown."""
        offset_us = at_us - self.real.now_us()
        if offset_us > self.clock.offset_us:
            await asyncio.to_thread(self.folder.keep, offset_us)
            await self._engine.supervisor.lease.move_clock(lambda: self._move(offset_us))

    def _move(self, offset_us: int) -> None:
        by_us = offset_us - self.clock.offset_us
        self.clock.offset_us = offset_us
        self._confirmed.moved(by_us)
        self._rest.clock_moved(by_us)
        if self._agent is not None and self._agent.modules is not None:
            self._agent.modules.clock_moved()

    # ------------------------------------------------------------------ what falls due

    async def _next_due_us(self, after_us: int) -> int | None:
        dues = [await self._rest.next_due_us(after_us), await self._agent_due_us()]
        return min((due_us for due_us in dues if due_us is not None), default=None)

    async def _agent_due_us(self) -> int | None:
        modules = None if self._agent is None else self._agent.modules
        return None if modules is None else await modules.next_due_us()

    async def _at_rest(self, steps: int) -> int:
        """Returns when all that is due was done and is durable, and nothing has followed from it that is due as well; and
        the instant up to which this holds."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._patience_us / 1e6
        while True:
            self._changed.clear()
            if self._closed:
                raise Unavailable(f"the server stops; the clock shows {self._shown()}")
            now_us = self.clock.now_us()
            if not (busy := await self._busy(now_us)):
                return now_us
            if loop.time() >= until_s:
                raise self._halted(steps, f"not at rest within {format_duration(self._patience_us)}: {busy}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RECHECK_S):
                    await self._changed.wait()

    async def _busy(self, now_us: int) -> str:
        """The agent first, whose work ends in timers where the engine keeps its schedules; and last again, since the engine
        may have passed a due time to it."""
        return self._agent_busy() or await self._schedule_busy(now_us) or self._rest.busy(now_us) or self._agent_busy()

    def _agent_busy(self) -> str:
        modules = None if self._agent is None else self._agent.modules
        return "" if modules is None else modules.busy()

    async def _schedule_busy(self, now_us: int) -> str:
        due_us = await self._agent_due_us()
        return "" if due_us is None or due_us > now_us else "due service calls wait to be started"

    def _halted(self, steps: int, reason: str) -> ClockHalted:
        return ClockHalted(f"the clock halted after {steps} steps and shows {self._shown()}: {reason}")

    def _shown(self) -> str:
        return format_instant(self.clock.now_us())
