"""Jobs: which rows they change, that none is changed twice or left out, at which rate, and on which node."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, drop, insert, leave_out, never, replace, rewrite

ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
RUN = "tocsin.timers.job_runner:_Run."
_TESTS = "tests/simulation/test_jobs.py::"


def _caught(name: str, edit: Edit, test: str) -> Mutation:
    return mutation(name, 17, edit, caught_by=_TESTS + test)._replace(proofs=())


MUTATIONS = [
    _caught(
        "a job's filter is not checked again when its batch is assembled",
        never(ASSEMBLY + "_resolve", "op.only_if.matches(present.timer)"),
        "test_rows_that_are_created_or_changed_meanwhile",
    ),
    _caught(
        "a job finds what it has shifted again",
        never(ASSEMBLY + "_update", "op.only_if is not None"),
        "test_shifted_timer_is_not_found_again_whatever_the_clock_of_its_node_shows",
    ),
    _caught(
        "a job shifts timers that were changed since",
        replace("tocsin.model.job:RowFilter.matches", "self.updated_before is None", by="True"),
        "test_killed_node_loses_no_row_and_changes_none_twice",
    ),
    _caught(
        "a job's place is stored before its page is durable",
        insert(RUN + "_do", "self._move_to(rows[-1].cursor)\nawait self._save()", before="self._change(...)"),
        "test_killed_node_loses_no_row_and_changes_none_twice",
    ),
    _caught(
        "a job ignores its rate",
        drop(RUN + "_until_due", "self._next_us - clock.boottime_us()"),
        "test_pause_holds_a_job_and_the_rate_bounds_it",
    ),
    _caught(
        "a job that is paused goes on",
        never(RUN + "_save", "self._job.state is not JobState.RUNNING"),
        "test_pause_holds_a_job_and_the_rate_bounds_it",
    ),
    _caught(
        "a node goes on with a job that another one has taken over",
        replace(RUN + "_save", "found[0].runner == self._me", by="True"),
        "test_node_ends_its_work_on_a_job_that_another_one_has_taken_over",
    ),
    _caught(
        "a write of a job without an outcome counts as done",
        rewrite(RUN + "_write", "self._pause_after(...)", to="return True"),
        "test_writes_and_reads_that_fail_are_repeated",
    ),
    _caught(
        "a job replays whatever has finished last",
        leave_out("tocsin.timers.job_rows:replay_of", "expected"),
        "test_run_that_has_finished_since_is_not_replayed",
    ),
    _caught(
        "two jobs change the same rows",
        never("tocsin.timers.jobs:Jobs.create", "rival is not None or len(others) >= LIVE_MAX"),
        "test_one_job_at_a_time_changes_the_same_rows",
    ),
    _caught(
        "a forwarded write of a job applies to any row",
        drop("tocsin.cluster.wire:encode_write", "write.only_if is not None"),
        "test_rows_that_are_created_or_changed_meanwhile",
    ),
]
