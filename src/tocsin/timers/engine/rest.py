"""What a clock that is set forward has to know of the engine: whether it is at rest, and when the next timer is due. For a
node that has its store to itself; nothing here runs unless a clock is moved."""

from __future__ import annotations

import asyncio

from tocsin.ports.store import KEY_MAX, FireKey
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.supervisor import Supervisor

_UUID_MAX = b"\xff" * 16


class EngineRest:
    """The engine as seen by whoever moves its clock."""

    def __init__(self, context: Context, supervisor: Supervisor) -> None:
        self._context = context
        self._supervisor = supervisor

    def busy(self, now_us: int) -> str:
        """What is still to be done of all that is due by this instant; empty if every attempt was made, and its result is
        durable. Results that wait for others to share their commit are written at once."""
        supervisor = self._supervisor
        if (reason := supervisor.dispatcher.paused_reason) is not None:
            return f"nothing fires now ({reason})"
        for shard in supervisor.shards.values():
            if found := self._busy(shard, now_us):
                return found
        return "results are being written" if any(lane.writing for lane in supervisor.ownership.lanes) else ""

    def _busy(self, shard: Shard, now_us: int) -> str:
        window, dispatcher = shard.window, self._supervisor.dispatcher
        if window is None:
            return f"shard {shard.shard_id} is being claimed"
        if window.has_work():
            shard.lane.schedule(shard, urgent=True)
            return "results are being written"
        if window.in_flight_count:
            return f"receivers have not answered yet: attempts in flight: {dispatcher.in_flight}"
        if window.horizon[0] < now_us:
            return "timers are being loaded"
        if window.longest_wait_us(now_us) or window.retrying:
            return "due timers wait to be sent"
        reasons = shard.suspended.reasons
        if reasons is None or any(dispatcher.room_for(shard, reason) for reason in reasons):
            # Due timers for which there was no room. The next sweep resumes them.
            self._supervisor.ownership.reconcile()
            return "due timers wait for room"
        return ""

    async def next_due_us(self, after_us: int) -> int | None:
        """The instant of the next timer after this instant; None if none waits. Suspended timers wait for something else.
        Call it at rest. Raises the store's errors."""
        after: FireKey = (after_us, _UUID_MAX)
        firsts = await asyncio.gather(*(self._first(shard_id, after) for shard_id in self._supervisor.shards))
        return min((first for first in firsts if first is not None), default=None)

    async def _first(self, shard_id: int, after: FireKey) -> int | None:
        context = self._context
        while after < KEY_MAX:
            page = await context.in_turn(context.store.load(shard_id, after, KEY_MAX, 1))
            if page.rows:
                return page.rows[0].key[0]
            after = page.complete_to
        return None

    def clock_moved(self, by_us: int) -> None:
        """The clock was set forward: whatever is due now fires."""
        self._supervisor.dispatcher.clock_moved(by_us)
        for shard in list(self._supervisor.dispatcher.shards.values()):
            shard.changed()
