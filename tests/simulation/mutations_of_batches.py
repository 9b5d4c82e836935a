"""Batches of callbacks: what is sent together, what is taken back, and which result is whose (rule 34)."""

from __future__ import annotations

from .mutation import Mutation, mutation
from .mutation_operators import Edit, always, drop, leave_out, never, replace, rewrite

_BATCHING = "tocsin.timers.engine.batching:"
_BEGINS = "tocsin.timers.engine.attempt:Attempt.begins_in_batch"
_ANSWER = "tocsin.model.batch_answer:"
_TESTS = "tests/simulation/test_batches.py::"


def _batched(name: str, *edits: Edit, caught_by: str = "") -> Mutation:
    return mutation(name, 34, *edits, caught_by=caught_by)._replace(proofs=(("tests.simulation.batched", 0),))


MUTATIONS = [
    _batched(
        "a timer that was deleted while it waited in a batch is sent",
        leave_out(_BEGINS, "in_flight.stale"),
        caught_by=_TESTS + "test_a_timer_that_was_deleted_while_it_waited_is_not_sent",
    ),
    _batched(
        "an occurrence is sent although its schedule was changed while it waited in a batch",
        leave_out(_BEGINS, "in_flight.row is not row"),
    ),
    _batched(
        "a batch is sent although its namespace was paused",
        never(_BATCHING + "Batch._is_taken", "namespace is not None and namespace.held"),
        caught_by=_TESTS + "test_a_paused_namespace_keeps_what_waits",
    ),
    _batched(
        "a batch is sent although its shard was lost",
        leave_out(_BEGINS, "shard.window is None"),
        caught_by=_TESTS + "test_a_timer_of_a_lost_shard_is_not_sent",
    ),
    _batched(
        "a batch is sent although its receiver has closed the flow",
        leave_out(_BEGINS, "each.is_closed(flow_us)"),
        caught_by=_TESTS + "test_a_flow_that_its_receiver_closes_keeps_what_waits",
    ),
    _batched(
        "a timer that expired while it waited in a batch is sent",
        leave_out(_BEGINS, "now_us > limit", in_="limit is not None"),
        caught_by=_TESTS + "test_a_timer_that_expires_while_it_waits_is_not_sent",
    ),
    _batched(
        "a batch is sent while the node may not fire",
        rewrite(_BATCHING + "Batch._is_taken", "return self._dispatcher.may_dispatch()", to="return True"),
        caught_by=_TESTS + "test_nothing_is_sent_while_the_node_may_not_fire",
    ),
    _batched(
        "a batch waits longer than its linger",
        replace(_BATCHING + "Batch.__init__", "linger_us / 1e6", by="2 * linger_us / 1e6"),
        caught_by=_TESTS + "test_no_timer_waits_for_others_longer_than_the_linger",
    ),
    _batched(
        "a timer waits for others of its batch until it has expired",
        never(_BATCHING + "Batch.add", "limit <= self.latest_us"),
        caught_by=_TESTS + "test_no_timer_waits_for_others_until_it_is_too_late_for_it",
    ),
    _batched(
        "timers of two receivers are sent together",
        replace(_BATCHING + "_key", "timer.url", by="''"),
        caught_by=_TESTS + "test_only_what_is_alike_is_sent_together",
    ),
    _batched(
        "timers with different credentials are sent together",
        replace(_BATCHING + "_key", "timer.credential", by="''"),
        caught_by=_TESTS + "test_only_what_is_alike_is_sent_together",
    ),
    _batched(
        "timers with different headers are sent together",
        replace(_BATCHING + "_key", "tuple(sorted(timer.headers.items()))", by="()"),
        caught_by=_TESTS + "test_only_what_is_alike_is_sent_together",
    ),
    _batched(
        "a raw body is sent in a batch",
        leave_out(_BATCHING + "batch_rule", "timer.body is not None"),
        caught_by=_TESTS + "test_what_has_no_envelope_in_its_body_is_sent_by_itself",
    ),
    _batched(
        "a batch has any number of bytes",
        never(_BATCHING + "Batches.join", "size > batch.room()[1]"),
        caught_by=_TESTS + "test_a_request_has_at_most_so_many_bytes",
    ),
    _batched(
        "a batch keeps its slot",
        drop(_BATCHING + "Batch._answered", "admission.end(self.path, self.key.namespace)"),
    ),
    _batched(
        "a batch keeps the slot of what it takes back",
        drop(_BATCHING + "Batch._send", "dispatcher.admission.end(self.path, self.key.namespace)"),
        caught_by=_TESTS + "test_nothing_is_sent_while_the_node_may_not_fire",
    ),
    _batched(
        "timers of a batch keep what they took of their flow",
        rewrite("tocsin.timers.engine.attempt:Attempt.free_flow", to="return"),
        caught_by=_TESTS + "test_a_rate_counts_timers_and_a_flow_has_its_own_batches",
    ),
    _batched(
        "a freed slot takes one timer that waits",
        rewrite(_BATCHING + "Batches._bring_forward", to="return 0, 0"),
        caught_by=_TESTS + "test_a_batch_takes_one_slot_and_what_waits_for_it",
    ),
    _batched(
        "a batch of what has waited for a slot holds it for the linger",
        drop(_BATCHING + "Batches.begin", "batch.hurry(now_us)"),
        caught_by=_TESTS + "test_a_batch_takes_one_slot_and_what_waits_for_it",
    ),
    _batched(
        "a debounced timer lingers, so that a later create keeps it from being sent",
        never(_BATCHING + "Batch.add", "timer.debounced is not None"),
        caught_by=_TESTS + "test_what_must_not_linger_is_sent_at_once",
    ),
    _batched(
        "an occurrence that is late already lingers",
        never(_BATCHING + "Batch.add", "row.key[0] + self.key.rule.linger_us <= now_us"),
        caught_by=_TESTS + "test_what_must_not_linger_is_sent_at_once",
    ),
    _batched(
        "a probe takes others along",
        replace(_BATCHING + "Batch.__init__", "path.destination.breaker.state is not BreakerState.CLOSED", by="False"),
        caught_by=_TESTS + "test_a_probe_is_one_timer",
    ),
    _batched(
        "a timer without a result counts as accepted",
        replace(_ANSWER + "item_responses", "found.get(webhook_id, missing)", by="found.get(webhook_id, response)"),
        caught_by=_TESTS + "test_each_timer_goes_on_by_its_own_result",
    ),
    _batched(
        "a refused batch fails its timers for good",
        never("tocsin.model.answer:judge", "isinstance(outcome, MissingResult)"),
        caught_by=_TESTS + "test_a_response_without_results_fails_one_attempt_of_each_timer",
    ),
    _batched(
        "a result's members are not read",
        always(_ANSWER + "_is_acceptance", "plain and 200 <= result.status < 300"),
        caught_by=_TESTS + "test_each_timer_goes_on_by_its_own_result",
    ),
]
