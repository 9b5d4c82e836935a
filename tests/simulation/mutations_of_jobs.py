"""Jobs: which rows they change, that none is changed twice or left out, at which rate, and on which node."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, drop, insert, leave_out, never, replace, rewrite

ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
RUN = "tocsin.timers.job_runner:_Run."
_TESTS = "tests/simulation/test_jobs.py::"


DELETION = "tocsin.timers.namespace_deletion:NamespaceDeletion."
_DELETIONS = "tests/simulation/test_namespace_deletion.py::"
_CONTEXT = "tocsin.timers.engine.context:Context."


def _of_deletion(name: str, edit: Edit, test: str) -> Mutation:
    return mutation(name, 30, edit, caught_by=_DELETIONS + test)._replace(proofs=())


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
        insert(RUN + "_do", "self._move_to(rows[-1].cursor)\nawait self._save()", before="self._change_by_shard(...)"),
        "test_killed_node_loses_no_row_and_changes_none_twice",
    ),
    _caught(
        "a job ignores its rate",
        drop(RUN + "_rows_due", "next_us - clock.boottime_us()"),
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
        "a call that began before a job could delete it is an error",
        replace(RUN + "_write", "ServiceCallNotScheduled", by="()"),
        "test_begun_call_is_skipped_and_a_deleted_one_whose_reply_was_lost_counts_as_changed",
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
    _of_deletion(
        "timers are created in a namespace that is being deleted",
        replace(_CONTEXT + "refusal", "known.deleting is None", by="True"),
        "test_held_namespace_takes_no_changes_and_its_name_can_be_used_again",
    ),
    _of_deletion(
        "timers of a namespace fire while it is deleted",
        leave_out("tocsin.model.namespace:Namespace.held", "self.deleting"),
        "test_killed_node_leaves_nothing_and_no_later_create_is_accepted",
    ),
    _of_deletion(
        "a deletion looks for rows while a create may become durable",
        rewrite(DELETION + "settle", "self._service.write", to="pass"),
        "test_no_pass_begins_while_a_create_that_was_accepted_before_may_become_durable",
    ),
    _of_deletion(
        "a deletion that is refused removes what comes before",
        never(RUN + "_delete_namespace", "deletion.in_use"),
        "test_a_deletion_that_is_refused_has_removed_nothing",
    ),
    _of_deletion(
        "a timer deleted with its namespace leaves no trace of itself",
        replace(_CONTEXT + "history_rule", "HistoryMode.ALL if known.deleting else known.history", by="known.history"),
        "test_a_node_killed_at_any_step_loses_none",
    ),
    _of_deletion(
        "an interrupted deletion deletes the namespace created since",
        replace("tocsin.timers.namespaces:Namespaces.remove", "known.deleting == job_id", by="True"),
        "test_a_node_killed_at_any_step_loses_none",
    ),
    _of_deletion(
        "a node keeps a namespace that is gone",
        drop(_CONTEXT + "_take_over", "self._forget(...)"),
        "test_held_namespace_takes_no_changes_and_its_name_can_be_used_again",
    ),
    _of_deletion(
        "a canceled deletion's namespace is released while its work goes on",
        leave_out("tocsin.timers.job_runner:JobRunner._begin", "self._work", in_="job_id not in live"),
        "test_a_namespace_is_held_until_the_work_of_its_canceled_deletion_has_ended",
    ),
    _of_deletion(
        "a namespace that is held for a job that has ended is not looked for",
        leave_out("tocsin.timers.job_runner:JobRunner._begin", "not marked"),
        "test_pending_timers_that_the_request_missed_fail_the_job_and_release_the_namespace",
    ),
]
