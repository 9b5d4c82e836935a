"""The table of what may become of a timer: its rare entries, and that nothing else passes."""

from __future__ import annotations

import pytest

from tests.properties.rare_transitions import RARE
from tests.support.cases import each
from tests.support.checked_window import PERMITTED, ForbiddenTransition, Transition
from tests.support.window_bench import Bench
from tocsin.timers.engine.rows import FinalAttempt, InFlightAttempt
from tocsin.timers.engine.window import Window

from .interleavings import Interleaving


@each("transition", list(RARE))
def test_rare_transition_is_in_the_table_and_occurs(transition: Transition) -> None:
    assert transition in RARE[transition]().transitions.reached & PERMITTED


def test_transition_that_the_table_does_not_permit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(window: Window, attempt: InFlightAttempt, conclusion: FinalAttempt, boot_us: int) -> bool:
        # As if it had not been sent.
        window._attempts.end(attempt)
        window._add(attempt.row)
        return True

    monkeypatch.setattr(Window, "answered", answered)
    bench = Bench()
    bench.create(10)
    bench.commit(bench.assemble())
    bench.fire()
    with pytest.raises(ForbiddenTransition, match="IN_FLIGHT FINAL_ATTEMPT WAITING"):
        bench.finish()
    violations = [Interleaving(seed).run() for seed in range(5)]
    assert "TRANSITION" in {violation.kind for violation in violations if violation is not None}


def test_timer_that_moves_without_an_event_is_reported() -> None:
    bench = Bench()
    bench.create(10)
    bench.commit(bench.assemble())
    bench.window.waiting.remove(bench.window.rows.popitem()[0])
    with pytest.raises(ForbiddenTransition, match="WAITING without an event ABSENT"):
        bench.window.check_all()
