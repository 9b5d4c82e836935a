"""Where a timer is in its owner's memory, and what keeps it from being fired: known here, or asked from another node."""

from __future__ import annotations

import asyncio

from tocsin.model.errors import Unavailable
from tocsin.model.timer import Timer
from tocsin.ports.clock import Clock
from tocsin.ports.forward import Located, Obstacle, Peers, RowPlace, Whereabouts
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.explaining import Asked
from tocsin.timers.listing import TimerView


def whereabouts(shard: Shard, dispatcher: Dispatcher, uuid: bytes) -> Whereabouts | None:
    """What this node knows of the timer now; None if it does not own the shard."""
    window = shard.window
    if window is None:
        return None
    attempts = window.in_flight.get(uuid)
    if attempts:
        latest = attempts[-1]
        until = latest.fired_at + latest.row.timer.timeout_us
        return Whereabouts(RowPlace.IN_FLIGHT, attempt=latest.number, until=until, since=latest.fired_at)
    if window.being_written(uuid):
        return Whereabouts(RowPlace.WRITING)
    row = window.rows.get(uuid)
    obstacle, name = _obstacle(shard, dispatcher, None if row is None else row.timer)
    return Whereabouts(RowPlace.STORE if row is None else RowPlace.WINDOW, obstacle, name)


def _obstacle(shard: Shard, dispatcher: Dispatcher, timer: Timer | None) -> tuple[Obstacle, str]:
    """The first obstacle in the way of the shard's timers, or of this one; and its name."""
    if (reason := dispatcher.paused_reason) is not None:
        return Obstacle.DISPATCH, reason
    if shard.draining:
        return Obstacle.HAND_OVER, ""
    return (Obstacle.NONE, "") if timer is None else dispatcher.obstacle(timer)


def pause_of(context: Context, view: TimerView) -> tuple[Obstacle, str] | None:
    """What is paused at the timer's next instant, as every node knows it, and its name: its flow or its destination."""
    timer, at = view.timer, view.next_attempt_at
    rules = context.flows.get(timer.namespace)
    flow = None if rules is None or not timer.flow_key else rules.find(timer.flow_key)
    if at is not None and flow is not None and flow.closed_until(at) is not None:
        return Obstacle.PAUSED_FLOW, timer.flow_key
    name = context.destination_of(timer.namespace, timer.url)
    return (Obstacle.PAUSED_DESTINATION, name) if name in context.paused_destinations else None


class Owners:
    """Asks the owners of shards about timers, each owner once, whichever node it is."""

    def __init__(self, supervisor: Supervisor, clock: Clock) -> None:
        self._supervisor = supervisor
        self._clock = clock
        #: The other nodes, once they can be reached.
        self.peers: Peers | None = None
        #: Since when the owners that did not answer last have not.
        self._silent_since: dict[bytes, int] = {}

    def locate(self, timers: Located) -> list[Whereabouts | None]:
        """What this node knows of each of the timers; None if it does not own the shard."""
        shards, dispatcher = self._supervisor.shards, self._supervisor.dispatcher
        return [
            None if (shard := shards.get(shard_id)) is None else whereabouts(shard, dispatcher, uuid)
            for shard_id, uuid in timers
        ]

    async def ask(self, timers: Located, timeout_us: int) -> list[Asked]:
        """What the owner of each of the timers knows of it, or why it could not be asked."""
        by_owner: dict[bytes, list[int]] = {}
        asked = [Asked(None)] * len(timers)
        for position, (shard_id, _) in enumerate(timers):
            if (owner := self._supervisor.placement.owner(shard_id)) is not None:
                by_owner.setdefault(owner.incarnation, []).append(position)
        answers = await asyncio.gather(
            *(self._ask(owner, [timers[i] for i in positions], timeout_us) for owner, positions in by_owner.items())
        )
        for positions, of_owner in zip(by_owner.values(), answers, strict=True):
            for position, each in zip(positions, of_owner, strict=True):
                asked[position] = each
        return asked

    async def _ask(self, owner: bytes, timers: Located, timeout_us: int) -> list[Asked]:
        supervisor = self._supervisor
        if owner == supervisor.incarnation:
            return [_answered(supervisor.node, found) for found in self.locate(timers)]
        names = {member.incarnation: member.node for member in supervisor.membership.members()}
        name = names.get(owner, owner.hex())
        try:
            if self.peers is None:
                raise Unavailable("this node is not connected to other nodes")
            found = await self.peers.locate(owner, timers, timeout_us)
        except Unavailable as error:
            # Nodes that no longer exist are not asked again.
            self._silent_since = {each: since for each, since in self._silent_since.items() if each in names}
            since = self._silent_since.setdefault(owner, self._clock.now_us())
            return [Asked(name, failure=str(error), since=since)] * len(timers)
        self._silent_since.pop(owner, None)
        return [_answered(name, each) for each in found]


def _answered(name: str, found: Whereabouts | None) -> Asked:
    return Asked(name, found, "" if found else "it does not own the shard any more")
