"""Why a timer has not fired: the gates that it passes in order, with the one that is closed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.timers.service import TimerView
from tocsin.web.pages.presentation import host_and_path


class Passage(StrEnum):
    """How far a timer has come with a gate."""

    PASSED = "passed"
    CLOSED = "closed"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: its name, and a note beside it. `at` is an instant (microseconds) in place of the note."""

    name: str
    passage: Passage
    note: str = ""
    at: int | None = None


#: The gate that is closed while a timer waits for something, by its position in the chain.
_TIME, _OWNER, _DISPATCH, _NAMESPACE, _FLOW, _DESTINATION, _SLOT, _ATTEMPT = range(8)
_CLOSED = {
    WaitsFor.OWNER: _OWNER,
    WaitsFor.LEASE: _DISPATCH,
    WaitsFor.CLOCK: _DISPATCH,
    WaitsFor.NAMESPACE: _NAMESPACE,
    WaitsFor.FLOW: _FLOW,
    WaitsFor.DESTINATION: _DESTINATION,
    WaitsFor.EGRESS: _DESTINATION,
    WaitsFor.SECRET: _ATTEMPT,
    WaitsFor.CREDENTIAL: _DESTINATION,
    WaitsFor.NODE: _SLOT,
    WaitsFor.RESPONSE: _ATTEMPT,
    WaitsFor.WRITE: _ATTEMPT,
}
#: What a closed gate is called, by what the timer waits for.
_CLOSED_NAMES = {
    WaitsFor.OWNER: "No node owns its shard",
    WaitsFor.LEASE: "The database does not answer the node",
    WaitsFor.CLOCK: "The node’s clock is wrong",
    WaitsFor.DESTINATION: "The destination takes no further request now",
    WaitsFor.EGRESS: "Its address is not allowed",
    WaitsFor.CREDENTIAL: "Its credential can’t be sent",
    WaitsFor.SECRET: "One of its secrets can’t be decrypted",
    WaitsFor.NODE: "All slots of the node are in use",
    WaitsFor.RESPONSE: "Waiting for the response",
    WaitsFor.WRITE: "The result is being stored",
}
_SUSPENDED = frozenset({WaitsFor.EGRESS, WaitsFor.CREDENTIAL, WaitsFor.SECRET})
_SHOWN = frozenset({TimerState.WAITING, TimerState.FIRING, TimerState.WRITING, TimerState.PAUSED, TimerState.BLOCKED})


def gates(view: TimerView, why: Explanation, attempts_max: int, now_us: int) -> list[Gate]:
    """The chain for a timer that is due or can't become due; empty for one that has only to wait for its instant, has
    finished, or about which nothing is known."""
    due = view.next_attempt_at is not None and view.next_attempt_at <= now_us
    if why.waits_for not in _CLOSED or not (due or why.state in _SHOWN or why.waits_for in _SUSPENDED):
        return []
    timer = view.timer
    paused = why.state is TimerState.PAUSED
    closed = _NAMESPACE if paused else _CLOSED[why.waits_for]
    if why.state is TimerState.BLOCKED and closed in (_SLOT, _ATTEMPT):
        closed = _DISPATCH
    chain = (
        ("Due time reached" if due else "Due time not reached yet", "", view.next_attempt_at),
        ("A node owns its shard", why.owner or "", None),
        ("The node fires timers", "", None),
        ("Its namespace is running", timer.namespace, None),
        ("Its flow has room", timer.flow_key, None),
        ("The destination has room", host_and_path(timer.url)[0], None),
        ("The node has a free slot", "", None),
        (f"Attempt {timer.attempts + 1}", f"of up to {attempts_max}", None),
    )
    found = []
    for position, (name, note, at) in enumerate(chain):
        if position == _FLOW and not timer.flow_key and closed != _FLOW:
            continue
        passage = Passage.CLOSED if position == closed else Passage.PASSED if position < closed else Passage.AHEAD
        if position == _TIME and not due:
            passage = Passage.AHEAD
        if passage is Passage.CLOSED:
            name = _closed_name(why, paused=paused)
        found.append(Gate(name, passage, note, at))
    return found


def _closed_name(why: Explanation, *, paused: bool) -> str:
    if why.waits_for is WaitsFor.FLOW:
        return "Its flow is paused or at its limit"
    if why.waits_for is WaitsFor.NAMESPACE:
        return "Its namespace is paused" if paused else "Its namespace has its share of the slots"
    if why.state is TimerState.BLOCKED and why.waits_for not in (WaitsFor.OWNER, WaitsFor.LEASE, WaitsFor.CLOCK):
        return "The node fires nothing at the moment"
    assert why.waits_for is not None
    return _CLOSED_NAMES[why.waits_for]
