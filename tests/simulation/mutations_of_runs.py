"""Runs: what is kept of them, and when it is written (rule 18)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, drop, leave_out, rewrite

ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
RUNS = "tocsin.timers.engine.runs:"
NOTIFICATIONS = "tocsin.timers.engine.notifications:"


def _simulated(name: str, *edits: Edit, caught_by: str = "") -> Mutation:
    # The interleavings of tests.properties know no runs.
    return mutation(name, 18, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation", 0),))


MUTATIONS = [
    _simulated(
        "a run is left out of the batch that ends it", drop(ASSEMBLY + "_add_run", "self._batch.store.runs.append")
    ),
    _simulated(
        "a run is written with a later batch",
        rewrite(
            ASSEMBLY + "_add_run",
            "self._batch.store.runs.append",
            to="""
            late = self._window.__dict__.setdefault("late", [])
            self._batch.store.runs += late
            late[:] = [run]
            """,
        ),
    ),
    _simulated(
        "a run is forgotten when a client moves its timer", leave_out(ASSEMBLY + "_update", "run", in_="self.write")
    ),
    _simulated("a run that is not rescheduled counts as rescheduled", drop(RUNS + "attempted_run", "after.attempts")),
    _simulated(
        "a run that leaves memory is not kept",
        rewrite(RUNS + "attempted_run", "after.attempts", to="if after.attempts:\n    return None"),
        caught_by="tests/unit/test_runs.py::test_plain_create_keeps_the_run_of_a_retry_that_is_not_in_memory",
    ),
    _simulated("an end is not reported to its hook", drop(ASSEMBLY + "notify", "self.write")),
    _simulated(
        "a notification is written apart from what it reports", drop(ASSEMBLY + "notify", "batch.store.together")
    ),
    _simulated(
        "a notification is deleted by the range of its own batch",
        rewrite(NOTIFICATIONS + "due_at", "delete_to is None", to="return now_us"),
        caught_by="tests/unit/test_notifications.py::test_notification_lies_above_the_delete_watermark_although_the_clock_was_set_back",
    ),
]
