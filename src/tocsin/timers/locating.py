"""Asks the owner of a timer's shard, this node or another, where the timer is."""

from __future__ import annotations

from tocsin.model.errors import Unavailable
from tocsin.ports.forward import Peers, Whereabouts
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.engine.whereabouts import whereabouts
from tocsin.timers.explaining import Asked


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
