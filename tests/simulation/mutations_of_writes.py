"""Batches, commits, loads, truncation and the range delete (rules 4, 5, 8 to 11, 13, 15 to 18), and what the store keeps."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import always, drop, insert, leave_out, never, only_if, replace, rewrite

WINDOW = "tocsin.timers.engine.window:Window."
ASSEMBLY = "tocsin.timers.engine.assembly:Assembly."
STORE = "tocsin.stores.memory:MemoryStore."
_FIRST_WAITING = "tocsin.timers.engine.waiting_rows:WaitingRows.first_key"
_WINDOW = "tests/unit/test_window.py::"
_DAMAGED = "tests/unit/test_damaged_rows.py::"
_FIRING_WAITS = (
    "tests/simulation/test_slow_commits.py::test_firing_waits_for_a_store_that_takes_fewer_results_than_there_are_calls"
)


#: A retry is written whatever has become of its timer.
_WRITES_EVERY_RETRY = "return self.write(Row((op.execute_at, uuid), op.generation, op.timer, 0))"

MUTATIONS = [
    # batches
    mutation("deletes and upserts of a batch overlap", 4, leave_out(ASSEMBLY + "_take", "key[1] not in batch.final")),
    mutation(
        "a bisected batch keeps the finished timers that it rewrites", 5, drop(ASSEMBLY + "batch", "batch.relied_on")
    ),
    mutation(
        "one bad row blocks the batch",
        5,
        drop("tocsin.timers.engine.committer:CommitLane._bisect_ops", "refuse_first"),
    ),
    mutation(
        "an operation that the store refused is forgotten",
        5,
        drop(WINDOW + "refuse", "self._refused"),
        caught_by=_WINDOW + "test_refused_retry_neither_fires_nor_is_lost",
    ),
    mutation(
        "a client's write takes the reserve of the row",
        15,
        replace(ASSEMBLY + "batch", "self._client_bytes_max", by="self._row_bytes_max"),
        caught_by=_DAMAGED + "test_timer_for_which_the_store_has_no_room_is_refused_with_its_largest_field",
    ),
    mutation(
        "a row damaged while it is suspended is resumed",
        15,
        replace(ASSEMBLY + "_resolve", "present.raw is None", by="True"),
        caught_by=_DAMAGED + "test_timer_damaged_while_its_namespace_is_paused_stays_suspended_unchanged",
    ),
    mutation(
        "a commit reads all present rows at once",
        17,
        replace(WINDOW + "to_fetch", "len(wanted) == uuids_max", by="False"),
        caught_by="tests/unit/test_bounded_reads.py::test_a_commit_reads_no_more_present_rows_than_memory_is_meant_for",
    ),
    mutation(
        "results that no commit has written leave room for more",
        13,
        replace(
            "tocsin.timers.engine.loader:Loader._page_rows",
            "share - len(window.rows) - waiting",
            by="share - len(window.rows)",
        ),
        replace(
            "tocsin.timers.engine.shard:Shard.recount",
            "context.window_timers + context.awaited",
            by="context.window_timers",
        ),
        caught_by=_FIRING_WAITS,
    ),
    mutation(
        "clients' writes leave no room for results that fall behind",
        14,
        replace("tocsin.timers.engine.committer:CommitLane._assembled", "rows_max // 2", by="1"),
        caught_by=_FIRING_WAITS,
    ),
    # commits
    mutation("a commit does not enter the window", 8, never(WINDOW + "committed", "stays.key")),
    mutation("a commit beyond the horizon enters the window", 8, leave_out(WINDOW + "committed", "stays.key")),
    mutation(
        "a commit beyond the horizon leaves the former row in the window",
        8,
        only_if(WINDOW + "committed", "self.waiting.remove", condition="row is None or row.key <= self.horizon"),
    ),
    mutation("a commit restores a row that has moved on", 8, never(WINDOW + "committed", "self.has_begun")),
    mutation(
        "a commit keeps the states before its row",
        8,
        drop(WINDOW + "committed", "self._forget_former"),
        caught_by=_WINDOW + "test_row_loaded_before_its_commit_is_confirmed_supersedes_former_states",
    ),
    mutation(
        "a superseded result is not reinstated once its row is durable",
        10,
        only_if(WINDOW + "committed", "self._reinstate", condition="op.uuid not in batch.final"),
        caught_by=_WINDOW + "test_result_superseded_by_its_own_rows_write_counts_after_the_commit",
    ),
    mutation(
        "a row that fires before its commit is confirmed keeps its former attempts",
        10,
        drop(WINDOW + "dispatch", "self._forget_former"),
        caught_by=_WINDOW + "test_attempt_of_a_former_row_decides_nothing_beside_the_loaded_one",
    ),
    mutation(
        "a commit keeps the refused delete of the row before",
        8,
        drop(WINDOW + "committed", "self.finished.pop"),
        caught_by=_WINDOW + "test_refused_delete_that_is_tried_again_spares_what_was_written_meanwhile",
    ),
    mutation(
        "a row that fires before its commit is confirmed keeps the refused delete of the row before",
        8,
        drop(WINDOW + "_forget_former", "self.finished[uuid]"),
        caught_by=_WINDOW + "test_refused_delete_that_is_tried_again_spares_what_was_written_meanwhile",
    ),
    mutation(
        "a row that was not sent fires while it is suspended",
        24,
        always(WINDOW + "due", "self._suspending"),
        caught_by=_WINDOW + "test_row_that_is_suspended_because_it_was_not_sent_does_not_fire_meanwhile",
    ),
    mutation(
        "the suspension of a former row ends that of the present one",
        14,
        always(WINDOW + "committed", "self._suspending.get(op.uuid) == op.expected"),
        caught_by=_WINDOW + "test_row_about_to_be_suspended_does_not_fire_after_the_suspension_of_a_former_row",
    ),
    # loads
    mutation("a write does not overrule the load", 9, drop(WINDOW + "loaded", "uuid in self._changed_since_load")),
    mutation(
        "a write beyond the end of the load does not overrule it",
        9,
        only_if(
            WINDOW + "committed",
            "self._changed_since_load[uuid] = stays",
            condition="stays is not None and stays.key <= self._load.up_to",
        ),
    ),
    mutation("a load adds a timer that is in flight", 9, never(WINDOW + "loaded", "self.has_begun(row)")),
    mutation(
        "the end of a page is inferred from the row count",
        9,
        replace(
            "tocsin.timers.engine.loader:Loader._load",
            "page.complete_to",
            by="request.up_to if len(rows) < max(self._page_rows(window), 1) or not rows else page.complete_to",
        ),
    ),
    mutation(
        "a load reads a stale snapshot",
        9,
        rewrite(
            STORE + "load",
            "Loaded",
            to="""
            if shard is None:
                return Loaded([], up_to)
            import copy
            now = copy.copy(shard)
            now.live, now.keys = dict(shard.live), list(shard.keys)
            old, shard.old = getattr(shard, "old", now), now
            return _page(old, old.keys, after, up_to, limit)
            """,
        ),
    ),
    mutation(
        "undecodable rows count as finished",
        15,
        rewrite(WINDOW + "loaded", "self.awaiting_write", to="self.finished[uuid] = Finished(row, row.timer, 0)"),
    ),
    mutation("a truncation keeps the load", 13, drop(WINDOW + "truncate", "_load")),
    mutation("a truncation keeps the horizon", 13, drop(WINDOW + "truncate", "self.horizon")),
    # generations and operations
    mutation("a result decides whatever the generation", 10, never(WINDOW + "answered", "attempt.superseded")),
    mutation(
        "generations are counted for each timer",
        10,
        rewrite(
            WINDOW + "accept",
            "op.generation = ...",
            to="""
            last = self.present(op.uuid)
            count = int.from_bytes(last.generation[-8:], "big") + 1 if last is not None else 1
            op.generation = bytes(24) + count.to_bytes(8, "big")
            """,
        ),
    ),
    mutation(
        "a delete under way allows a retry",
        10,
        drop(WINDOW + "accept", "self.in_flight"),
        rewrite(ASSEMBLY + "_resolve", "answered is None", to=_WRITES_EVERY_RETRY),
        never(WINDOW + "dispatch", "uuid in self._client_ops"),
    ),
    mutation(
        "an update that keeps the instant keeps the firing",
        10,
        only_if(ASSEMBLY + "_update", "timer.firing", condition="op.changes.execute_at is not msgspec.UNSET"),
    ),
    mutation(
        "a retry overwrites an earlier operation",
        18,
        rewrite(ASSEMBLY + "_resolve", "answered is None", to=_WRITES_EVERY_RETRY),
        caught_by=_WINDOW + "test_refused_retry_does_not_replace_what_was_written_meanwhile",
    ),
    mutation(
        "a retry is written in a later batch than its end",
        18,
        rewrite(
            ASSEMBLY + "_resolve",
            "answered is None",
            to="""
            if op.reason is None:
                op.reason = "later"
                batch.final[uuid] = None
                return None
            """,
        ),
        insert(
            WINDOW + "committed",
            """
            if op.kind is OpKind.RETRY and op.uuid in batch.final and batch.final[op.uuid] is None:
                self.pending.append(op)
            """,
            before="op.supersedes",
        ),
    ),
    mutation(
        "a delete is resolved when it is accepted",
        17,
        insert(
            WINDOW + "accept",
            """
            if op.kind is OpKind.DELETE:
                seen = self.present(op.uuid)
                op.expected = seen.generation if seen is not None else b""
            """,
            after="op.generation = ...",
        ),
        insert(
            ASSEMBLY + "_resolve",
            """
            if op.expected and present.generation != op.expected:
                return None
            """,
            before="Status.CANCELED",
        ),
    ),
    mutation(
        "a delete is answered when it is accepted",
        16,
        insert(
            WINDOW + "accept",
            """
            if op.kind is OpKind.DELETE:
                op.answer(None)
            """,
            after="self.pending.append",
        ),
    ),
    mutation(
        "not-pending replies do not wait for the finished delete",
        16,
        drop(ASSEMBLY + "_present", "batch.relied_on"),
        caught_by=_WINDOW + "test_not_pending_reply_commits_with_the_finished_delete",
    ),
    mutation(
        "a write that waited is written after its deadline",
        21,
        never(ASSEMBLY + "batch", "op.deadline_us is not None", "self._boot_us"),
    ),
    # the delete watermark
    mutation(
        "the delete watermark passes the window", 11, replace(_FIRST_WAITING, "self._top(self._order)", by="None")
    ),
    mutation(
        "the delete watermark passes deferred timers",
        11,
        replace(_FIRST_WAITING, "self._top(self._deferred)", by="None"),
    ),
    mutation(
        "the delete watermark passes in-flight attempts",
        11,
        replace(WINDOW + "first_unfinished", "self._attempts.first_key()", by="self.waiting.first_key()"),
    ),
    mutation(
        "the delete watermark passes superseded results",
        11,
        rewrite(WINDOW + "first_unfinished", "self.awaiting_write", to="waiting = ()"),
    ),
    mutation(
        "the delete watermark passes retrying timers", 11, drop(WINDOW + "first_unfinished", "min(limit, row.key)")
    ),
    mutation("the delete watermark passes the batch's upserts", 11, drop(ASSEMBLY + "_take_finished", "upsert.uuid")),
    mutation("the delete watermark passes the horizon", 11, leave_out(ASSEMBLY + "_take_finished", "window.horizon")),
    mutation(
        "the delete watermark of an empty window is the horizon",
        11,
        insert(
            ASSEMBLY + "_take_finished",
            """
            from tocsin.ports.store import KEY_MAX, KEY_MIN
            if window.range_delete and limit == KEY_MAX and window.finished and window.horizon > KEY_MIN:
                watermark = window.horizon
            window.floor = max(getattr(window, "floor", KEY_MIN), watermark or KEY_MIN)
            """,
            before="batch.store.delete_to",
        ),
        replace(
            ASSEMBLY + "_resolve",
            "op.timer.execute_at",
            by='max(op.timer.execute_at, getattr(window, "floor", (0, b""))[0] + 1)',
        ),
    ),
    # what the store keeps
    mutation(
        "instants are stored in seconds",
        0,
        insert(
            "tocsin.stores.memory:_Shard.upsert",
            "rows = [row._replace(execute_at=row.execute_at // 1_000_000 * 1_000_000) for row in rows]",
        ),
    ),
    mutation(
        "uuids are ordered differently",
        0,
        rewrite(
            "tocsin.stores.memory:_Shard.remove_to",
            to="""
            for found in [k for k in self.keys if (k[0], k[1][::-1]) <= (key[0], key[1][::-1])]:
                del self.live[found[1]]
                self.keys.remove(found)
            """,
        ),
        rewrite(
            "tocsin.stores.memory:_page",
            "bisect_right",
            to="""
            order = lambda k: (k[0], k[1][::-1])
            keys = sorted(keys, key=order)
            begin = bisect_right(keys, order(after), key=order)
            end = bisect_right(keys, order(up_to), key=order)
            """,
        ),
    ),
]
