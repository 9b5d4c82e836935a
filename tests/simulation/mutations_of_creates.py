"""Conditional creates: what they compare, which keys they remember, which ends they rely on (rules 16 and 26). Plain ones:
what holds for them in a part (rule 32)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, always, drop, insert, leave_out, narrow, never, replace, rewrite

EXISTING = "tocsin.timers.engine.idempotency:"
WINDOW, ASSEMBLY = "tocsin.timers.engine.window:Window.", "tocsin.timers.engine.assembly:Assembly."
_WINDOW = "tests/unit/test_window.py::"
_PERFECT = "tests/properties/test_repeats.py::test_every_create_is_answered_as_by_a_reference_model"


def _simulated(name: str, rule: int, *edits: Edit, caught_by: str = "") -> Mutation:
    # The interleavings of tests.properties have no such creates.
    return mutation(name, rule, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation", 0),))


_PARTS, _QUEUE = "tocsin.timers.engine.parts:Part.", "tocsin.timers.engine.write_queue:WriteQueue."
_SAME = "tests/properties/test_parts.py::test_a_part_has_the_effect_of_its_operations"
_PART = "tests/unit/test_parts.py::test_"

_OF_PARTS = [
    mutation("creates in a part let attempts decide", 10, drop(WINDOW + "accept_creates", "attempt.superseded = True")),
    mutation(
        "results that a part's creates have superseded are forgotten",
        10,
        drop(WINDOW + "_forget_creates", "self._reinstate"),
        caught_by=_PART + "an_attempt_decides_again_when_the_part_with_its_timer_is_refused",
    ),
    mutation(
        "what memory has in flight does not leave its place at the commit",
        8,
        leave_out(WINDOW + "remembered", "self.in_flight"),
        caught_by=_SAME,
    ),
    mutation(
        "what waits for its instant does not leave its place at the commit",
        8,
        leave_out(WINDOW + "remembered", "self.rows"),
        caught_by=_PART + "a_timer_that_is_created_again_beyond_the_horizon_leaves_the_window",
    ),
    mutation(
        "what awaits a write does not leave its place at the commit",
        8,
        leave_out(WINDOW + "remembered", "self.awaiting_write"),
        leave_out(WINDOW + "remembered", "self.superseded"),
        caught_by=_SAME,
    ),
    mutation(
        "what is retried does not leave its place at the commit",
        8,
        leave_out(WINDOW + "remembered", "self.retrying"),
        caught_by=_SAME,
    ),
    mutation(
        "a first try in a part repeats what is known of its timer",
        32,
        never(ASSEMBLY + "_write_part", "part.may_repeat"),
        caught_by=_SAME,
    ),
    mutation(
        "a first try in a part does not look at what memory has of its timer",
        32,
        replace(_PARTS + "may_repeat", "bool(remembered(keyed))", by="False"),
        caught_by=_SAME,
    ),
    mutation(
        "a part does not end the runs that it supersedes",
        31,
        drop(ASSEMBLY + "_write_part", "self._add_run"),
        caught_by=_SAME,
    ),
    mutation(
        "of a part's creates of one id the first counts",
        31,
        insert(
            "tocsin.timers.engine.rows:Batch.add_part",
            """
            if uuid in final:
                continue
            """,
            before="final[uuid] = ...",
        ),
        caught_by=_PART + "of_two_creates_of_one_id_in_a_part_the_later_counts",
    ),
    mutation(
        "an update does not see the create before it in its batch",
        31,
        drop(WINDOW + "to_fetch", "written.update"),
        drop("tocsin.timers.engine.rows:Batch.add_part", "final[uuid] = ..."),
        caught_by=_SAME,
    ),
    mutation(
        "creates join a part although their deadline is another",
        31,
        always(_PARTS + "may_take", "JOINED_WITHIN_US"),
        caught_by=_PART + "creates_with_another_deadline_are_another_part",
    ),
    mutation(
        "creates join a part behind whose last one a generation was given",
        31,
        leave_out(_PARTS + "may_take", "next_sequence"),
        caught_by=_PART + "creates_after_a_generation_that_was_given_meanwhile_are_another_part",
    ),
    mutation(
        "a part that is taken apart gets other generations",
        31,
        rewrite(_PARTS + "operations", "op.generation", to="op.generation = bytes(32)"),
        caught_by=_SAME,
    ),
    mutation(
        "a refused part comes behind what followed it",
        31,
        rewrite(_QUEUE + "put_back", "ops[position:position]", to="ops += part.operations()"),
        caught_by=_SAME,
    ),
    mutation(
        "a refused part is lost",
        31,
        drop(_QUEUE + "put_back", "ops[position:position]"),
        caught_by=_PART + "a_part_that_was_refused_with_its_batch_goes_on_as_operations_in_its_place",
    ),
    mutation(
        "a part that was taken apart is lost",
        31,
        drop(_QUEUE + "take_apart", "self.entries.extendleft"),
        caught_by=_SAME,
    ),
    mutation(
        "a part with a row that is too large is written",
        31,
        never(ASSEMBLY + "_write_part", "self._client_bytes_max"),
        caught_by=_SAME,
    ),
    mutation(
        "a part exceeds the rows of a commit",
        31,
        never(ASSEMBLY + "_write_part", "rows_max"),
        caught_by=_SAME,
    ),
    mutation(
        "a part exceeds its namespace's quota",
        31,
        always(ASSEMBLY + "_admits", "room.left"),
        caught_by=_PART + "a_quota_refuses_only_the_creates_for_which_it_has_no_room",
    ),
    mutation(
        "a part is created in a namespace that is being deleted",
        30,
        never(ASSEMBLY + "_admits", "self._refusal_of"),
        caught_by=_PART + "nothing_is_created_in_a_namespace_that_is_being_deleted",
    ),
    mutation(
        "a part is not answered when the outcome is unknown",
        3,
        drop("tocsin.timers.engine.rows:Batch.refuse", "part.answer"),
        caught_by=_PART + "an_unknown_outcome_of_a_part_ends_the_claim",
    ),
    mutation(
        "a part under way is not answered at its deadline",
        21,
        replace("tocsin.timers.engine.committer:CommitLane._check_deadlines", "batch.parts", by="()"),
        caught_by=_PART + "clients_of_parts_get_an_error_in_time_when_the_store_does_not_respond",
    ),
    mutation(
        "the creates of a moved shard's parts are not forwarded",
        3,
        rewrite(
            "tocsin.timers.writing:PlainCreates._refused",
            "write.op.answer",
            to="write.client().refuse(error)",
        ),
        caught_by=_PART + "a_claim_that_ends_moves_each_create_of_its_parts",
    ),
]

MUTATIONS = [
    _simulated(
        "a timer that finished in memory counts as pending",
        26,
        never(EXISTING + "former_row", "finished is not None"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "an end is reported before it is durable",
        16,
        drop(EXISTING + "former_row", "batch.relied_on"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "a timer that the same batch ended is overlooked",
        26,
        drop(EXISTING + "former_row", "batch.ended"),
        caught_by=_PERFECT,
    ),
    _simulated("a key is not remembered", 26, replace(EXISTING + "create_if", "op.condition.keys_after(...)", by="()")),
    _simulated(
        "former keys are not carried over",
        26,
        replace(EXISTING + "create_if", "None if former is None else former.timer", by="None"),
    ),
    _simulated(
        "keys are stored before the batch is",
        26,
        rewrite(
            EXISTING + "create_if",
            "timer = ...",
            to="""
            timer = op.timer
            timer.keys = (*timer.keys, *keys)[-4:]
            """,
        ),
        caught_by=_WINDOW + "test_create_that_is_assembled_again_stores_its_key_once",
    ),
    _simulated(
        "a timer without history keeps no keys",
        26,
        narrow("tocsin.timers.engine.ends:EndRows.keep", "timer.keys", and_="keeps(mode, timer)"),
    ),
    _simulated(
        "keys are forgotten with a short retention",
        26,
        replace(EXISTING + "kept_for_its_keys", "max(retention_us, KEYS_KEPT_US)", by="retention_us"),
        caught_by=_WINDOW + "test_idempotency_key_outlives_its_timer_by_a_day_in_a_slim_record",
    ),
    _simulated(
        "a conditional create compares only with timers in memory",
        26,
        drop(EXISTING + "former_row", "found.live is not None"),
    ),
    _simulated(
        "a repeated create goes by memory alone",
        26,
        never("tocsin.timers.engine.window:Window.needs_store", "op.condition is not None and op.condition.reads"),
        caught_by=_PERFECT,
    ),
    _simulated(
        "a forwarded create loses its condition",
        26,
        leave_out("tocsin.timers.writing:Writes.forward", "op.condition"),
    ),
    *_OF_PARTS,
]
