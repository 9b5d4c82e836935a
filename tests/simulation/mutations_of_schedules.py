"""Schedules: one row, identified by occurrence and attempt (rule 10, amended), whose results meet the present definition."""

from __future__ import annotations

from .mutation import Mutation
from .mutation_operators import Edit, always, drop, insert, never, replace, rewrite

WINDOW = "tocsin.timers.engine.window:Window."
ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
DISPATCHER = "tocsin.timers.engine.dispatcher:Dispatcher."
RECURRING = "tocsin.timers.engine.recurring:"
CHANGES = "tocsin.timers.engine.schedule_changes:"
#: The simulation with schedules in every seed.
PROOFS = (("tests.simulation.scheduled", 0),)


_TESTS = "tests/unit/test_schedules.py::"
_UPKEEP = "tests/simulation/test_schedule_upkeep.py::"
_CALENDARS = "tests/properties/test_calendar_schedules.py::"
_REPLANNING = "tests/properties/test_replanning.py::"
_PASSES = "tests/simulation/test_replanning_passes.py::"


def _mutation(name: str, rule: int, *edits: Edit, caught_by: str = "") -> Mutation:
    test = caught_by if "::" in caught_by else _TESTS + caught_by
    return Mutation(name, rule, edits, PROOFS, (test,) if caught_by else ())


MUTATIONS = [
    _mutation(
        "a schedule's attempt is identified by its row's generation",
        10,
        always("tocsin.timers.engine.rows:Row.__init__", "timer.schedule is None"),
    ),
    _mutation(
        "the next occurrence has the definition of the dispatch",
        10,
        replace(ASSEMBLY + "_recur", "present.timer", by="op.timer"),
    ),
    _mutation(
        "a page does not show an attempt its definition",
        10,
        drop(WINDOW + "loaded", "self._adopt"),
        caught_by="test_a_page_shows_an_attempt_that_outlived_its_claim_the_present_row",
    ),
    _mutation(
        "a page brings a schedule's former row",
        9,
        drop(WINDOW + "_adopt", "self._changed_since_load[uuid] = row"),
        caught_by="test_a_page_read_before_a_change_does_not_bring_the_former_row",
    ),
    _mutation("a change does not reach the attempt in flight", 10, drop(WINDOW + "committed", "self._adopt")),
    _mutation(
        "the next occurrence is written by a later batch",
        18,
        insert(
            ASSEMBLY + "_turn",
            "if op.kind is OpKind.RECUR and timer.status is Status.PENDING:\n"
            "    batch.final[op.uuid] = None\n"
            "    batch.ended[op.uuid] = row\n"
            "    create = WriteOp(OpKind.CREATE, op.uuid, timer.namespace, timer=timer)\n"
            "    self._window.accept(create)\n"
            "    return row\n",
            before="run = ...",
        ),
    ),
    _mutation(
        "refused edits don't count",
        0,
        drop(ASSEMBLY + "_change_schedule", "_RECKONING_OF_CHANGE"),
        caught_by="test_a_batch_ends_after_a_number_of_changes_even_if_they_are_refused",
    ),
    _mutation(
        "an attempt begins while a client changes its schedule",
        10,
        never(DISPATCHER + "_waits", "shard.window.is_changing"),
        caught_by="test_no_attempt_begins_while_a_client_changes_its_schedule",
    ),
    _mutation(
        "an attempt left to a former owner does not count as begun",
        25,
        drop(ASSEMBLY + "_resolve", "timer = recurring.left(timer)"),
        caught_by="test_a_result_handed_over_meets_a_definition_changed_by_the_next_owner",
    ),
    _mutation(
        "a paused schedule tries again",
        0,
        never(RECURRING + "_may_try_again", "state.paused"),
        caught_by="test_a_pause_lets_the_attempt_end_and_skips_instants",
    ),
    _mutation(
        "missed instants are not accounted for",
        0,
        drop(RECURRING + "_regular", "why", "too_old"),
    ),
    _mutation(
        "a result applies to any occurrence",
        10,
        never(ASSEMBLY + "_recur", "present.identity != op.expected"),
        caught_by="test_a_result_handed_over_meets_a_definition_changed_by_the_next_owner",
    ),
    _mutation(
        "newer time zones move an occurrence that has begun",
        10,
        never(RECURRING + "has_moved", "has_begun"),
        caught_by=_REPLANNING + "test_an_occurrence_that_has_begun_is_not_planned_again",
    ),
    _mutation(
        "an instant that newer time zones bring forward is met late",
        0,
        drop("tocsin.timers.engine.replanning:Replanning._check_namespace", "self._replan"),
        caught_by=_UPKEEP + "test_newer_time_zones_reach_schedules_that_wait",
    ),
    _mutation(
        "a plan that was not written is not made again",
        0,
        drop("tocsin.timers.engine.replanning:_Replanned._refused", "self._checked.pop"),
        caught_by=_PASSES + "test_a_plan_that_was_not_written_is_made_again",
    ),
    _mutation(
        "what another node has planned is not checked",
        0,
        never("tocsin.timers.engine.replanning:Replanning._begin", "epoch > checked + 1"),
        caught_by=_PASSES + "test_what_another_node_has_planned_meanwhile_is_checked_after_the_shard_is_claimed_again",
    ),
    _mutation(
        "a due row fires though a changed calendar excludes it",
        23,
        never(RECURRING + "gives_way", "has_moved"),
        caught_by=_CALENDARS + "test_no_row_fires_at_an_instant_that_a_changed_calendar_excludes",
    ),
    _mutation(
        "an instant that a changed calendar allows is met late",
        0,
        never("tocsin.timers.engine.replanning:Replanning.check", "self._calendars.get"),
        caught_by=_UPKEEP + "test_a_changed_calendar_reaches_schedules_that_wait",
    ),
    _mutation(
        "excluded instants are not accounted for",
        0,
        always(RECURRING + "excluded_between", "until <= after"),
        caught_by=_CALENDARS + "test_every_instant_fires_or_is_accounted_for",
    ),
    _mutation(
        "jitter depends on calendars",
        0,
        rewrite("tocsin.model.occurrences:Occurrences._delayed_after", "self._bounds.after", to="bound = following"),
        caught_by=_CALENDARS + "test_every_instant_fires_or_is_accounted_for",
    ),
    _mutation(
        "an outgrown history is not noted",
        0,
        drop("tocsin.timers.engine.committer:CommitLane._committed", "note_recorded"),
        caught_by=_UPKEEP + "test_history_keeps_the_newest_occurrences_of_each_schedule",
    ),
    _mutation(
        "a change overwrites a version that it does not expect",
        0,
        always("tocsin.model.errors:version_conflict", "expected in (None, present)"),
        caught_by="test_a_change_applies_only_to_the_version_that_it_expects",
    ),
    _mutation(
        "a delete takes a version that it does not expect",
        0,
        never(ASSEMBLY + "_resolve", "unexpected"),
        caught_by="test_a_delete_applies_only_to_the_version_that_it_expects",
    ),
    _mutation(
        "a new definition forgets who manages the schedule",
        0,
        always(CHANGES + "_marked", "managed_by"),
        caught_by="test_who_manages_a_schedule_stays_unless_another_is_named",
    ),
    _mutation(
        "what a refused change let wait is not dispatched",
        0,
        drop("tocsin.timers.engine.committer:CommitLane._refuse_clients", "shard.changed"),
        caught_by=_UPKEEP + "test_an_occurrence_that_waits_for_a_change_fires_when_that_is_refused",
    ),
    _mutation(
        "another timing leaves instants behind that are not accounted for",
        0,
        rewrite(CHANGES + "_left_by_former", to="return []"),
        caught_by="tests/unit/test_schedule_timing.py::test_instants_that_another_timing_leaves_behind_are_missed",
    ),
]
