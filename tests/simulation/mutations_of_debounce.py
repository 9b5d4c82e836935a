"""Debounced creates: which of them are one firing, when it is due, what it delivers (rule 31)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, always, drop, leave_out, never, replace, rewrite

_MODULE = "tocsin.timers.engine.debouncing:"
_DEBOUNCE = _MODULE + "debounce"
_TESTS = "tests/unit/test_debouncing.py::"
_REFERENCE = "tests/properties/test_debounce.py::test_debounced_creates_are_those_of_a_slow_reference"


def _debounced(name: str, *edits: Edit, caught_by: str = "") -> Mutation:
    return mutation(name, 31, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation.debounced", 0),))


MUTATIONS = [
    _debounced(
        "a create joins a timer with an attempt",
        rewrite(_MODULE + "_has_begun", to="return False"),
        caught_by=_REFERENCE,
    ),
    _debounced(
        "a create joins a timer with an attempt in flight",
        leave_out(_MODULE + "_has_begun", "window.has_begun(...)"),
        caught_by=_REFERENCE,
    ),
    _debounced(
        "a create joins a firing that had been sent and was replayed",
        leave_out(_MODULE + "_has_begun", "timer.replay"),
        caught_by=_TESTS + "test_a_replayed_firing_is_not_joined",
    ),
    _debounced(
        "a create joins a timer that was handed over in flight",
        leave_out(_MODULE + "_has_begun", "row.key[0] != timer.execute_at"),
        caught_by=_TESTS + "test_a_timer_handed_over_in_flight_is_not_joined_and_its_attempt_may_end_first",
    ),
    _debounced(
        "a create that joins keeps the firing's name",
        rewrite(
            _DEBOUNCE,
            "changed.created_at = former.timer.created_at",
            to="changed.created_at, changed.firing = former.timer.created_at, former.timer.firing",
        ),
    ),
    _debounced(
        "the payloads of an attempt that fails are dropped",
        never(_DEBOUNCE, "wanted.collect and not _is_delivered(...)"),
    ),
    _debounced(
        "what was delivered while the create waited is delivered again",
        rewrite(_MODULE + "_is_delivered", to="return False"),
        caught_by=_TESTS + "test_what_an_attempt_has_delivered_while_a_create_waits_is_not_delivered_again",
    ),
    _debounced(
        "any result counts as a delivery",
        leave_out(_MODULE + "_is_delivered", "conclusion.timer.status is Status.COMPLETED"),
        caught_by=_REFERENCE,
    ),
    _debounced(
        "a create postpones the timer without a limit",
        replace(_DEBOUNCE, "min(now_us + wanted.delay_us, state.latest_at)", by="now_us + wanted.delay_us"),
    ),
    _debounced(
        "a later create's longest delay replaces an earlier one's",
        replace(
            _MODULE + "_joined",
            "min(state.latest_at, state.first_at + wanted.max_delay_us)",
            by="state.first_at + wanted.max_delay_us",
        ),
        caught_by=_TESTS + "test_the_longest_delay_of_each_create_is_kept",
    ),
    _debounced(
        "payloads are sent again while the attempt that has them is in flight",
        drop(_MODULE + "_continued", "ends += ..."),
        caught_by=_TESTS
        + "test_collected_payloads_whose_delivery_is_not_durable_begin_the_new_window_after_their_attempt",
    ),
    _debounced(
        "a collection takes any number of payloads",
        never(_DEBOUNCE, "collected > wanted.collect"),
        caught_by=_TESTS + "test_a_full_collection_refuses_and_leaves_the_timer_as_it_is",
    ),
    _debounced(
        "only the latest payload is collected",
        always(_MODULE + "_collection", "before is None"),
    ),
    _debounced(
        "a window forgets the keys of its payloads",
        replace("tocsin.model.condition:Condition.keys_after", "self.debounce.keys_max", by="4"),
        caught_by=_TESTS + "test_each_collected_payload_keeps_its_key_and_others_keep_the_last_ones",
    ),
    _debounced(
        "a debounced create goes by memory alone",
        rewrite(
            "tocsin.timers.engine.window:Window.needs_store",
            "return op.condition.debounce is None or ...",
            to="return op.condition.debounce is None",
        ),
    ),
    _debounced(
        "a node returns a debounced create as it was sent to it",
        leave_out("tocsin.cluster.wire:encode_result", "result.timer.debounced is None"),
        caught_by="tests/unit/test_cluster_wire.py::test_what_a_debounced_create_has_made_is_returned_whole",
    ),
]
