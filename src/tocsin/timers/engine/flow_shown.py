"""What of flows is shown: how many timers and calls wait on this node, by rule."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest

from tocsin.ports.forward import FlowCounts
from tocsin.timers.engine.call_flows import counted_calls, hidden_calls
from tocsin.timers.engine.flow_states import KeyState, RuleState


def timers_waiting(rules: Iterable[RuleState]) -> int:
    """Due timers that wait in memory for any flow."""
    return sum(state.waiting - counted_calls(state) for rule in rules for state in rule.keys.values())


def busiest(rules: Iterable[RuleState], most: int) -> list[tuple[str, str, int, int]]:
    """The rules for which most waits: (namespace, match, attempts in flight here, timers and calls waiting here)."""
    found = [(*rule.name, rule.usage.in_use, _waiting(rule.keys.values())) for rule in rules if rule.keys]
    return nlargest(most, found, key=lambda each: (each[3], each[2]))


def counts(rules: Iterable[RuleState], namespace: str) -> dict[str, FlowCounts]:
    """What this node has of the namespace's flows, by the match of their rule; without rules of which it has nothing."""
    found = {}
    for rule in rules:
        if rule.name.namespace == namespace:
            waiting = _waiting(rule.keys.values())
            if rule.usage.in_use or waiting:
                found[rule.name.match] = FlowCounts(rule.usage.in_use, waiting)
    return found


def _waiting(states: Iterable[KeyState]) -> int:
    return sum(state.waiting + hidden_calls(state) for state in states)
