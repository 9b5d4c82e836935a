"""When a change of a namespace may be acknowledged: once every node that may fire a timer applies it (rule 23)."""

from __future__ import annotations

import asyncio

from tocsin.model.errors import StoreError
from tocsin.ports.forward import Peers
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.membership import Membership, address_of

#: Pause between two attempts to reach the nodes that have not confirmed.
_PAUSE_US = 100_000


async def until_known_everywhere(context: Context, membership: Membership, peers: Peers) -> None:
    """Returns once no node fires by the namespaces as they were stored before the call.

    Each living node is asked to read them. For a node that does not confirm, this waits until its former reading has expired:
    `namespaces_lease`, and a fifth more because clocks run at different rates. Instants of two nodes are never compared.
    """
    clock = context.clock
    until = clock.boottime_us() + context.limits.namespaces_lease_us * 6 // 5
    known = {context.incarnation}
    while (left_us := until - clock.boottime_us()) > 0:
        missing: dict[bytes, str] | None = None
        try:
            # A strong read, after the change: a node missing here reads the namespaces after it has written its member row.
            missing = await _missing(context, membership, known)
            if not missing:
                return
            async with asyncio.timeout(left_us / 1e6):
                known |= await peers.refresh_namespaces(missing)
        except (StoreError, TimeoutError):
            # Then only the time decides.
            pass
        if missing is None or missing.keys() - known:
            await asyncio.sleep(min(_PAUSE_US, left_us) / 1e6)


async def _missing(context: Context, membership: Membership, known: set[bytes]) -> dict[bytes, str]:
    """The addresses of the members that have not confirmed, by incarnation. Members presumed dead are left out: their lease
    has expired, and they read the namespaces before they fire again."""
    boot = context.clock.boottime_us()
    return {
        member.incarnation: address_of(member)
        for member in await context.bounded(context.store.members())
        if member.incarnation not in known
        and membership.presumed_dead(member.incarnation, boot) != (member.incarnation, member.counter)
    }
