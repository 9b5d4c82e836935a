"""Destinations: the shares of their paths, and their breakers (ADR 100)."""

from __future__ import annotations

from .mutation import Mutation
from .mutation_operators import Edit, drop, leave_out, never, replace, rewrite

ADMISSION = "tocsin.timers.engine.admission:Admission."
BREAKER = "tocsin.timers.engine.breaker:Breaker."
PATH = "tocsin.timers.engine.destination:DestinationPath."
_BREAKER = "tests/unit/test_breaker.py::"
_DESTINATIONS = "tests/simulation/test_destinations.py::"
_MESSAGES = "tests/simulation/test_messages.py::"
_LATENESS = "tests/simulation/test_lateness.py::"


def _mutation(name: str, *edits: Edit, caught_by: str) -> Mutation:
    return Mutation(name, 0, edits, tests=(caught_by,))


MUTATIONS = [
    _mutation(
        "a hung path takes all slots of its host",
        replace(
            PATH + "has_room",
            "self.in_flight < GREED * (destination.limit - destination.in_flight)",
            by="destination.in_flight < destination.limit",
        ),
        caught_by=_LATENESS + "test_healthy_path_is_on_time_beside_a_hung_path_of_the_same_host",
    ),
    _mutation(
        "paths together exceed the limit of their host",
        leave_out(PATH + "has_room", "GREED"),
        caught_by=_LATENESS + "test_a_host_none_of_whose_paths_answers_leaves_slots_to_others",
    ),
    _mutation(
        "messages take the slots of callbacks",
        replace(ADMISSION + "_slots_of", "is_subject_url(url)", by="False"),
        caught_by=_MESSAGES + "test_callbacks_are_on_time_beside_subjects_that_acknowledge_nothing",
    ),
    _mutation(
        "a message leaves its namespace's slot to none that waits",
        drop("tocsin.timers.engine.dispatcher:Dispatcher.serve_waiting", "self._serve_blocked"),
        caught_by=_MESSAGES + "test_a_message_that_waits_for_its_namespace_goes_when_one_to_another_subject_ends",
    ),
    _mutation(
        "a hung path reduces the limit of its host",
        rewrite(
            ADMISSION + "learn", "destination.limit // 2", to="destination.limit = max(destination.limit // 2, least)"
        ),
        caught_by=_LATENESS + "test_a_host_none_of_whose_paths_answers_leaves_slots_to_others",
    ),
    _mutation(
        "the answers of other paths do not count",
        replace(ADMISSION + "learn", "all(...)", by="True"),
        caught_by=_LATENESS + "test_healthy_path_is_on_time_beside_a_hung_path_of_the_same_host",
    ),
    _mutation(
        "a straggler counts as a probe",
        rewrite(BREAKER + "end", "current = ...", to="current = True"),
        caught_by=_BREAKER + "test_an_attempt_that_began_before_it_opened_decides_nothing",
    ),
    _mutation(
        "probes are not one at a time",
        drop(BREAKER + "begin", "self.blocks = True"),
        caught_by=_DESTINATIONS + "test_probes_take_turns_among_waiting_timers",
    ),
    _mutation(
        "an open breaker keeps no attempt from beginning",
        rewrite(
            "tocsin.timers.engine.destination:Destination.takes_requests",
            to="return self.back_off is None and not self.paused",
        ),
        caught_by=_DESTINATIONS
        + "test_timers_wait_without_attempts_while_nearly_all_fail_and_fire_once_probes_succeed",
    ),
    _mutation(
        "the end of a wait is not planned",
        drop(ADMISSION + "_breaker_changed", "destination.set_alarm"),
        caught_by=_DESTINATIONS
        + "test_timers_wait_without_attempts_while_nearly_all_fail_and_fire_once_probes_succeed",
    ),
    _mutation(
        "what ended before the window counts",
        never(BREAKER + "_count", "slot != self._slot"),
        caught_by=_BREAKER + "test_what_ended_before_the_window_does_not_count",
    ),
    _mutation(
        "nothing wakes a destination that is resumed",
        drop(ADMISSION + "apply_pauses", "self._may_have_opened"),
        caught_by=_DESTINATIONS + "test_a_pause_begins_and_ends_while_requests_are_in_flight",
    ),
]
