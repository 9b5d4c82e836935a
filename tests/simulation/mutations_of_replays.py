"""Replays: which timers they bring back, and as what (rule 29)."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import drop, leave_out, never, replace, rewrite

_REPLAY = "tocsin.timers.engine.idempotency:replay"
_TESTS = "tests/unit/test_replay.py::"
_SCHEDULES = "tests/unit/test_schedules.py::"

MUTATIONS = [
    mutation(
        "a pending timer is replayed",
        29,
        never(_REPLAY, "timer.status is Status.PENDING"),
        caught_by=_TESTS + "test_pending_timer_is_not_replayed_wherever_it_is",
    ),
    mutation(
        "a replay knows only what is in memory",
        29,
        rewrite(
            "tocsin.timers.engine.window:Window.needs_store",
            "return self.present(op.uuid) is None",
            to="return False",
        ),
        caught_by=_TESTS + "test_pending_timer_is_not_replayed_wherever_it_is",
    ),
    mutation(
        "a replay takes the end in memory for the last one, whether or not it is kept",
        29,
        rewrite(
            "tocsin.timers.engine.window:Window.needs_store",
            "return self.present(op.uuid) is None",
            to="return self.present(op.uuid) is None and op.uuid not in self.finished",
        ),
        caught_by=_TESTS + "test_failed_run_is_replayed_after_a_later_one_that_is_not_kept",
    ),
    mutation(
        "another run is replayed than the one that was meant",
        29,
        never(_REPLAY, "op.expected and op.expected != former.generation"),
        caught_by=_TESTS + "test_only_the_expected_run_is_replayed",
    ),
    mutation(
        "a timer is replayed without its payload",
        29,
        never(_REPLAY, "timer.reduced"),
        caught_by=_TESTS + "test_timer_of_which_nothing_is_kept_is_not_found_and_a_reduced_one_not_replayable",
    ),
    mutation(
        "a replayed run overwrites the record of the one before",
        29,
        replace(
            "tocsin.timers.engine.runs:_generation_of_state",
            "row.timer.replay or row.timer.firing",
            by="row.timer.firing",
        ),
        caught_by=_TESTS + "test_replayed_run_is_recorded_apart_from_the_one_before",
    ),
    mutation(
        "a failure stays listed after its replay",
        29,
        never("tocsin.timers.engine.assembly:Assembly._replay", "former.timer.status in FAILED"),
        caught_by=_TESTS + "test_replayed_failure_is_dealt_with_whether_or_not_it_was_durable",
    ),
    mutation(
        "a failure is listed that the same batch replays",
        29,
        leave_out("tocsin.timers.engine.ends:EndRows.keep", "batch.store.resolved"),
        caught_by=_TESTS + "test_replayed_failure_is_dealt_with_whether_or_not_it_was_durable",
    ),
    mutation(
        "a replayed run goes on counting attempts",
        29,
        drop(_REPLAY, "timer.attempts"),
        caught_by=_TESTS + "test_replay_without_an_instant_is_due_at_once",
    ),
    mutation(
        "a replayed occurrence that waits is taken twice",
        29,
        replace(
            "tocsin.timers.engine.schedule_changes:_change",
            "tuple(each for each in asked.occurrences if each not in state.replays)",
            by="asked.occurrences",
        ),
        caught_by=_SCHEDULES + "test_failed_occurrences_are_replayed_under_their_names_in_turn_with_regular_ones",
    ),
    mutation(
        "replayed occurrences keep regular instants waiting",
        29,
        rewrite(
            "tocsin.timers.engine.recurring:ended",
            "state.replays[1:]",
            to="state = msgspec.structs.replace(state, replays=state.replays[1:])",
        ),
        caught_by=_SCHEDULES + "test_failed_occurrences_are_replayed_under_their_names_in_turn_with_regular_ones",
    ),
    mutation(
        "a replayed occurrence that is postponed takes a name that it had",
        29,
        rewrite(
            "tocsin.timers.engine.recurring:postponed",
            "int(count or 0)",
            to='return f"{name}.{state_of(timer)[1].postponed + 1}"',
        ),
        caught_by=_SCHEDULES + "test_postponed_occurrence_that_is_replayed_and_postponed_again_has_a_new_name",
    ),
    mutation(
        "a failed occurrence stays listed after its replay",
        29,
        never("tocsin.timers.engine.assembly:Assembly._change_schedule", "isinstance(op.change, Replay)"),
        caught_by="tests/integration/server/test_replays.py::test_failed_occurrence_fires_again_under_its_webhook_id",
    ),
]
