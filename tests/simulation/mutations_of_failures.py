"""Failures: which ends are listed, and when that is written (rule 28)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, always, drop, never, rewrite

ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
ENDS = "tocsin.timers.engine.ends:EndRows."


def _simulated(name: str, *edits: Edit, caught_by: str = "") -> Mutation:
    # The interleavings of tests.properties know no failures.
    return mutation(name, 28, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation", 0),))


MUTATIONS = [
    _simulated(
        "a failure is written with a later batch",
        rewrite(
            ENDS + "fail",
            "self._batch.store.failures.append",
            to="""
            late = self._window.__dict__.setdefault("late_failures", [])
            self._batch.store.failures += late
            late[:] = [failure_row(uuid, generation, ended, failed_at, self._failure_retention_us)]
            """,
        ),
    ),
    _simulated("a failed timer is not listed", never(ENDS + "keep", "timer.status in FAILED")),
    _simulated("any end is listed as a failure", always(ENDS + "keep", "timer.status in FAILED")),
    _simulated(
        "a failed occurrence is not listed",
        drop(ASSEMBLY + "_turn", "self.ends.fail"),
        caught_by="tests/unit/test_failures.py::test_a_failed_occurrence_is_listed_while_its_schedule_goes_on",
    ),
    _simulated(
        "what failed is gone before its failure",
        drop(ENDS + "keep", "retention_us = max(retention_us, self._failure_retention_us)"),
        caught_by="tests/unit/test_failures.py::test_a_failed_timer_is_kept_as_long_as_its_failure",
    ),
]
