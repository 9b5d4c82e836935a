"""How many suspended timers may be resumed now, by the reason for which they are suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.ports.forward import REFUSED, UNOPENED, credential_of
from tocsin.timers.engine.rows import FLOW_REASON
from tocsin.timers.engine.shard import OTHER_KEYS, rule_of

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
    if reason.startswith(OTHER_KEYS):
        # Which keys these are, and whether they are open, only a round shows.
        return 0 if _is_paused(dispatcher, name) else dispatcher.admission.room_of_flows(shard)[0]
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


def _is_paused(dispatcher: Dispatcher, rule: str) -> bool:
    namespace, match = rule.split("/", 1)
    rules = dispatcher.context.flows.get(namespace)
    flow = None if rules is None else rules.get(match)
    return flow is not None and flow.closed_until(dispatcher.context.clock.now_us()) is not None


def sharing_rule(dispatcher: Dispatcher, reason: str) -> str | None:
    """The rule of the flow's key, if what is suspended for this reason may have to wait in memory again, which all keys
    share; None if it is no such reason, or what waits there waits for what is suspended."""
    if not reason.startswith(FLOW_REASON):
        return None
    rule = rule_of(dispatcher.context, reason)
    namespace, match = rule.split("/", 1)
    rules = dispatcher.context.flows.get(namespace)
    flow = None if rules is None else rules.get(match)
    return None if flow is not None and flow.ordered else rule


def waits_in_memory(dispatcher: Dispatcher, reason: str) -> bool:
    """Whether timers of the flow's key wait in memory."""
    state = dispatcher.flows.known(*reason.removeprefix(FLOW_REASON).split("/", 1))
    return state is not None and bool(state.queues)


def shared_slots(dispatcher: Dispatcher, rule: str) -> int:
    """How many timers of keys of which nothing waits may begin at once, as far as the rule's keys share what they need."""
    flows, slots = dispatcher.flows, dispatcher.context.limits.resume_rows
    namespace, match = rule.split("/", 1)
    flow_us = dispatcher.context.flow_time_us()
    for name in {(namespace, match), (namespace, "")}:
        state = flows.rules.get(name)
        if state is None:
            continue
        outer = None if name[1] else state.keys.get("")
        if state.blocked or (outer is not None and (outer.blocked or outer.queues)):
            return 0
        if state.accounts is None:
            # One has to ask.
            slots = min(slots, 1)
            continue
        slots = min(slots, state.accounts.total.free(flow_us))
        if outer is not None and outer.account is not None:
            slots = min(slots, outer.account.free(flow_us))
    return slots
