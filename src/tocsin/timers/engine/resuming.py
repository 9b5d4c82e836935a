"""How many suspended timers may be resumed now, by the reason for which they are suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.ports.forward import REFUSED, UNOPENED, credential_of

if TYPE_CHECKING:
    from tocsin.timers.engine.dispatcher import Dispatcher
    from tocsin.timers.engine.shard import Shard

#: Timers of an ordered key that are resumed at least while those in memory wait for them.
ORDERED_ROWS = 16


def room_for(dispatcher: Dispatcher, shard: Shard, reason: str) -> int:
    """How many of the shard's timers suspended for this reason may be resumed now."""
    context, kind, _, name = dispatcher.context, *reason.partition(":")
    if kind == "namespace":
        namespace = context.namespaces.get(name)
        busy = (namespace is not None and namespace.held) or name in dispatcher.admission.callbacks.blocked
        return 0 if busy else context.limits.resume_rows
    if kind == "destination":
        return dispatcher.admission.room_for(shard, name)
    if kind == "flow":
        return _room_for_flow(dispatcher, shard, *name.split("/", 1))
    found = credential_of(reason)
    tried = (kind in (REFUSED, UNOPENED) or found) and shard.suspended.refused_rounds
    if tried or (found and not context.credential_gate.obstacle(*found)):
        return context.limits.resume_rows
    return 0


def _room_for_flow(dispatcher: Dispatcher, shard: Shard, namespace: str, key: str) -> int:
    state, slots = dispatcher.flows.known(namespace, key), dispatcher.flows.room(namespace, key)
    if state is None:
        return dispatcher.context.limits.resume_rows if slots is None else slots
    if state.rule.ordered and shard.order.waits_for_stored(namespace, key):
        # However full memory is: what waits there waits for these.
        return max(dispatcher.admission.room_at(shard, state, slots or 0), ORDERED_ROWS)
    return dispatcher.admission.room_at(shard, state, slots or 0)
