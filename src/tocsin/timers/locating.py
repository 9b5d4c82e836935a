"""Where a timer is in its owner's memory, and what keeps it from being fired: known here, or asked from another node."""

from __future__ import annotations

from tocsin.model.errors import Unavailable
from tocsin.model.timer import Timer
from tocsin.ports.forward import Obstacle, Peers, RowPlace, Whereabouts
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.explaining import Asked


def whereabouts(shard: Shard, dispatcher: Dispatcher, uuid: bytes) -> Whereabouts | None:
    """What this node knows of the timer now; None if it does not own the shard."""
    window = shard.window
    if window is None:
        return None
    attempts = window.in_flight.get(uuid)
    if attempts:
        latest = attempts[-1]
        until = latest.fired_at + latest.row.timer.timeout_us
        return Whereabouts(RowPlace.IN_FLIGHT, attempt=latest.number, until=until)
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


async def ask_owner(supervisor: Supervisor, peers: Peers | None, shard_id: int, uuid: bytes) -> Asked:
    """What the owner knows of the timer, or why it could not be asked."""
    owner = supervisor.placement.owner(shard_id)
    if owner is None:
        return Asked(None)
    if owner.incarnation == supervisor.incarnation:
        return Asked(supervisor.node, located_here(supervisor, shard_id, uuid))
    names = {member.incarnation: member.node for member in supervisor.membership.members()}
    name = names.get(owner.incarnation, owner.incarnation.hex())
    if peers is None:
        return Asked(name, failure="this node is not connected to other nodes")
    try:
        found = await peers.locate(owner.incarnation, shard_id, uuid)
    except Unavailable as error:
        return Asked(name, failure=str(error))
    return Asked(name, found, "" if found else "it does not own the shard any more")


def located_here(supervisor: Supervisor, shard_id: int, uuid: bytes) -> Whereabouts | None:
    """What this node knows of the timer; None if it does not own the shard."""
    shard = supervisor.shards.get(shard_id)
    return None if shard is None else whereabouts(shard, supervisor.dispatcher, uuid)
