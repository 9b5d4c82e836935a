"""Flows: grants, homes, accounts (ADR 99), and tokens that outlive them (ADR 132)."""

from __future__ import annotations

from .mutation import Mutation
from .mutation_operators import Edit, always, drop, leave_out, never, replace, rewrite

ACCOUNT = "tocsin.timers.engine.flow_accounts:Account."
CONTROL = "tocsin.timers.engine.flow_control:FlowControl."
DISPATCHER = "tocsin.timers.engine.dispatcher:Dispatcher."
EXCHANGE = "tocsin.timers.engine.flow_exchange:FlowExchange."
HOME = "tocsin.timers.engine.flow_home:Home."
ORDER = "tocsin.timers.engine.flow_order:ShardOrder."
_ACCOUNTS = "tests/unit/test_flow_accounts.py::"
_EXCHANGE = "tests/unit/test_flow_exchange.py::"
_SINGLE_NODE = "tests/simulation/test_flows.py::"
TOKENS = "tocsin.timers.engine.flow_tokens:"
_SLOW = "tests/simulation/test_slow_rates.py::"
_ORDERED = "tests/simulation/test_ordered.py::"


def _mutation(name: str, *edits: Edit, caught_by: str = "") -> Mutation:
    """A mutation that seeds with flows notice, or one test."""
    proofs = (("tests.simulation.flowed", 0),)
    return Mutation(name, 0, edits, proofs, (caught_by,) if caught_by else ())


MUTATIONS = [
    _mutation(
        "grants are valid from the answer on",
        replace(EXCHANGE + "_take", "target.sent_at", by="self._context.flow_time_us()"),
        caught_by=_EXCHANGE + "test_a_late_answer_grants_nothing",
    ),
    _mutation(
        "a report leaves former grants valid",
        rewrite(
            EXCHANGE + "_report",
            "state.granted",
            "target.number",
            to="state.changed, state.sent = False, target.number",
        ),
        caught_by=_EXCHANGE + "test_a_report_voids_what_was_granted_before",
    ),
    _mutation(
        "a former home's grants stay valid",
        drop(EXCHANGE + "_target", "state.granted"),
        caught_by=_EXCHANGE + "test_what_a_former_home_has_granted_is_void",
    ),
    _mutation(
        "an overtaken answer counts",
        leave_out(EXCHANGE + "_exchange", "target.number != report.number"),
        caught_by=_EXCHANGE + "test_an_answer_that_a_later_report_overtook_grants_nothing",
    ),
    _mutation(
        "an overtaken report counts",
        never(HOME + "report", "self._numbers.get"),
        caught_by="tests/unit/test_flow_home.py::test_a_report_that_was_overtaken_changes_nothing",
    ),
    _mutation(
        "a home does not ask",
        rewrite(HOME + "begin", "self._awaited = others - self.nodes", to="self._awaited = set()"),
    ),
    _mutation(
        "a new home has a full bucket",
        replace(ACCOUNT + "__init__", "since_us * rate.count + limits.burst * rate.per_us", by="since_us * rate.count"),
        caught_by=_ACCOUNTS + "test_a_new_home_begins_without_tokens",
    ),
    _mutation(
        "unused tokens return on top of what others hold",
        replace(ACCOUNT + "_give_back", "now + held * limits.rate.per_us", by="now"),
        caught_by=_ACCOUNTS + "test_tokens_return_but_not_on_top_of_what_others_hold",
    ),
    _mutation(
        "all granted tokens return",
        replace(ACCOUNT + "report", "begun - holder.begun", by="0"),
        caught_by=_ACCOUNTS + "test_used_tokens_do_not_return",
    ),
    _mutation("granted slots are not counted", drop(ACCOUNT + "grant", "self._held")),
    _mutation(
        "slots of other nodes are not counted",
        replace(ACCOUNT + "in_use", "self._held", by="0"),
        replace(ACCOUNT + "lets", "self._held", by="0"),
    ),
    _mutation(
        "slots of the home's own node are not counted",
        replace(ACCOUNT + "in_use", "local.in_use", by="0"),
        replace(ACCOUNT + "lets", "local.in_use", by="0"),
    ),
    _mutation(
        "the slots of a dead node stay in use",
        drop(EXCHANGE + "_placement_changed", "home.forget"),
        caught_by=_EXCHANGE + "test_slots_of_a_dead_node_are_free_again",
    ),
    _mutation("an attempt's end is not reported", drop(CONTROL + "end", "self._note")),
    _mutation(
        "the total is not granted",
        drop("tocsin.timers.engine.flow_home:_grant", "total.grant"),
        caught_by="tests/unit/test_flow_home.py::test_a_grant_needs_a_slot_of_the_key_and_one_of_all",
    ),
    _mutation("the total of the home's own node is not taken", drop(CONTROL + "begin", "rule.usage.in_use")),
    _mutation(
        "a namespace's own limits do not apply beside a flow's",
        rewrite(CONTROL + "of", "state.namespace_key = outer", to="state.namespace_key = None"),
        caught_by=_SINGLE_NODE + "test_a_namespace_and_a_flow_limit_together",
    ),
    _mutation(
        "the owner of another epoch grants",
        replace(EXCHANGE + "_reported", "home.epoch != report.epoch", by="False"),
        caught_by=_EXCHANGE + "test_a_report_to_a_former_home_is_answered_so",
    ),
    _mutation(
        "what a key waits for is not served when it becomes free",
        drop(CONTROL + "end", "self.wake(each)"),
        caught_by=_SINGLE_NODE + "test_parallelism_of_each_key_and_of_all",
    ),
    _mutation(
        "a closed key does not open by itself",
        drop(CONTROL + "_await", "self.plan"),
        caught_by=_SINGLE_NODE + "test_a_rate_is_kept_exactly_and_used_up",
    ),
    _mutation(
        "the key of a namespace's limits is forgotten",
        replace(
            CONTROL + "settle",
            "state.key and state.is_idle and rule.keys.get(state.key) is state",
            by="state.is_idle and rule.keys.get(state.key) is state",
        ),
        replace(CONTROL + "end", "each.key and not each.in_use", by="not each.in_use"),
        caught_by=_SINGLE_NODE + "test_a_namespaces_limit_holds_after_nothing_of_it_was_in_flight",
    ),
    _mutation(
        "accounts of idle keys are kept",
        drop(CONTROL + "settle", "del rule.keys[state.key]"),
        caught_by=_SINGLE_NODE + "test_many_keys_leave_nothing_in_memory",
    ),
    _mutation(
        "a retry gives its key's turn away",
        replace("tocsin.timers.engine.attempt:Attempt.conclude", "word == 'retried'", by="False"),
        drop("tocsin.timers.engine.assembly:Assembly.write", "self.turn_reason"),
        caught_by=_ORDERED + "test_a_retry_keeps_the_turn",
    ),
    _mutation(
        "a timer with its key's turn is not suspended between its attempts",
        drop("tocsin.timers.engine.assembly:Assembly.write", "self.turn_reason"),
    ),
    _mutation(
        "a new owner does not look for the timer with the turn",
        drop(ORDER + "_await_retry", "self._give_turn"),
        caught_by=_ORDERED + "test_a_new_owner_lets_nothing_begin_before_a_retry_that_it_finds",
    ),
    _mutation(
        "a new owner lets timers begin before it knows all that are due",
        replace(ORDER + "lets", "self._caught_up", by="True"),
        caught_by=_ORDERED + "test_a_new_owner_lets_nothing_begin_before_all_that_was_due_is_known",
    ),
    _mutation(
        "what waits in memory begins before what is stored",
        always(ORDER + "lets", "row.key <= line.first"),
        caught_by=_ORDERED + "test_the_order_holds_after_a_pause_of_the_namespace",
    ),
    _mutation(
        "a timer that the database refuses to resume lets the others pass",
        rewrite(ORDER + "refused", "line.recent", to="line.recent = line.recent"),
        caught_by=_ORDERED + "test_nothing_passes_a_stored_timer_that_the_database_refuses_to_resume_for_a_while",
    ),
    _mutation(
        "timers of a key wait in the order of their arrival",
        never(ORDER + "arrange", "place < len(rows) - 1"),
        caught_by=_ORDERED + "test_a_rule_becomes_ordered_while_its_timers_wait",
    ),
    _mutation(
        "what finds a slot at once does not ask its flow",
        replace(DISPATCHER + "_begin_or_defer", "self.flows.is_open(flow)", by="True"),
        caught_by=_SINGLE_NODE + "test_a_rate_is_kept_exactly_and_used_up",
    ),
    _mutation(
        "what has waited for a slot does not ask its flow",
        replace(DISPATCHER + "fire_first", "flow is place", by="True"),
        caught_by=_SINGLE_NODE + "test_a_flow_that_closes_while_its_timers_wait_for_a_slot_is_kept",
    ),
    _mutation(
        "a timer that waits for its destination lets others pass",
        drop(DISPATCHER + "_begin_or_defer", "give_turn"),
        caught_by=_ORDERED + "test_the_first_waits_for_its_destination_and_the_others_for_it",
    ),
    _mutation(
        "a part that replaces the stored first of an ordered key is not noted",
        always(ORDER + "committed", "isdisjoint"),
        caught_by=_ORDERED + "test_a_stored_timer_that_is_created_again_keeps_nothing_back",
    ),
    _mutation(
        "a deleted timer keeps its key's turn",
        always(ORDER + "committed", "_goes_on"),
        caught_by=_ORDERED + "test_a_timer_that_is_canceled_between_its_attempts_keeps_nothing_back",
    ),
    _mutation(
        "a new home looks up no tokens of slow rates",
        drop("tocsin.timers.engine.flow_home:RuleAccounts._begin_slow", "account.ask"),
        caught_by=_SLOW + "test_a_node_that_restarts_more_often_than_tokens_come_fires_at_its_rate",
    ),
    _mutation(
        "tokens of slow rates are not stored",
        drop(TOKENS + "TokenRows.note", "self.unsaved[place] = account"),
        caught_by=_SLOW + "test_a_burst_is_not_there_again_after_a_restart",
    ),
    _mutation(
        "a node leaves a shard before the tokens of slow rates are stored",
        leave_out("tocsin.timers.engine.ownership:_has_results", "window.queue.tokens.waits"),
        caught_by=_SLOW + "test_tokens_that_were_just_taken_are_stored_before_the_shard_is_left",
    ),
    _mutation(
        "tokens that are taken during a commit are not stored",
        never(TOKENS + "TokenRows.written", "account.full_at != full_at"),
        caught_by=_SLOW + "test_tokens_that_are_taken_during_a_commit_are_stored_by_the_next",
    ),
    _mutation(
        "an instant of a wrong clock closes a key",
        rewrite(
            ACCOUNT + "restore",
            "most_us",
            "max(full_in_us, 0)",
            to="self._full_at = rate.count * (now_us + full_in_us)",
        ),
        caught_by=_SLOW + "test_a_clock_that_was_wrong_closes_no_key_for_longer_than_the_bucket_takes",
    ),
    _mutation(
        "a lost claim takes along what it had not stored",
        drop("tocsin.timers.engine.shard:Shard.lose", "self._tokens_left"),
        caught_by=_SLOW + "test_a_claim_that_is_lost_before_its_tokens_are_stored_forgets_nothing",
    ),
    _mutation(
        "an old home takes the accounts of a new rule for complete",
        replace("tocsin.timers.engine.flow_home:RuleAccounts._begin_slow", "self._made_at_us", by="self._since_us"),
        caught_by=_SLOW + "test_a_rule_that_is_deleted_and_made_again_goes_by_its_rows",
    ),
    _mutation(
        "a row of tokens that is refused once is not stored",
        never("tocsin.timers.engine.committer:CommitLane._commit_tokens", "place != refused"),
        caught_by=_SLOW + "test_a_refused_row_leaves_those_of_other_keys",
    ),
]
