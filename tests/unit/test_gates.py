"""The chain of gates on a timer's page."""

from __future__ import annotations

from itertools import product

from tests.unit.test_explaining import EARLIER, view_of

from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.web.pages.timers.gates import Passage, gates

NOW = EARLIER + 1


def chain(state: TimerState, waits_for: WaitsFor | None, flow_key: str = "") -> list[tuple[str, Passage]]:
    why = Explanation(state, waits_for, None, 3, "n1", "…")
    return [(gate.name, gate.passage) for gate in gates(view_of(EARLIER, flow_key=flow_key), why, 3, NOW)]


def test_every_explanation_has_at_most_one_closed_gate() -> None:
    # Also those that were true a moment ago: the page is made after its timer was explained.
    for state, waits_for, flow_key in product(TimerState, (*WaitsFor, None), ("", "vendor")):
        closed = [name for name, passage in chain(state, waits_for, flow_key) if passage is Passage.CLOSED]
        assert len(closed) <= 1, (state, waits_for)


def test_a_timer_that_fell_due_since_it_was_explained_has_no_chain() -> None:
    assert chain(TimerState.RETRYING, WaitsFor.INSTANT) == []


def test_the_gate_of_a_flow_is_there_for_timers_with_a_key_or_under_limits_of_their_namespace() -> None:
    name = "Its flow is paused or at its limit"
    assert (name, Passage.CLOSED) in chain(TimerState.WAITING, WaitsFor.FLOW, "vendor")
    assert (name, Passage.CLOSED) in chain(TimerState.WAITING, WaitsFor.FLOW)
    assert ("Its flow has room", Passage.PASSED) in chain(TimerState.WAITING, WaitsFor.DESTINATION, "vendor")
    assert not any("flow" in gate for gate, _ in chain(TimerState.WAITING, WaitsFor.DESTINATION))
