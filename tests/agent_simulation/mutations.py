"""Each promise about a call's outcome, dropped or changed in the source: what the agent's simulation must notice."""

from __future__ import annotations

from tests.simulation.mutation import Mutation, mutation
from tests.simulation.mutation_operators import (
    Edit,
    always,
    drop,
    insert,
    leave_out,
    narrow,
    never,
    replace,
    rewrite,
    widen,
)

CALL = "tocsin.service_calls.orchestration.service_call:"
CHANGE = "tocsin.service_calls.orchestration.handlers:Orchestration._change"
SCHEDULES = "tocsin.stores.service_calls.timer_schedules:"
EXECUTION = "tocsin.service_calls.execution."
LOG_WRITE = "tocsin.stores.service_calls.executions:SqlExecutionLog._write"
CHECKS = EXECUTION + "handlers:"
EXECUTOR = EXECUTION + "executor:Executor."
FLOWS = EXECUTION + "flow_queue:FlowQueue."
TURNS = EXECUTION + "turns:Turns."
OUTBOX = "tocsin.service_calls.outbox:OutboxDispatcher."

#: Where these are hunted, with how many seeds.
PROOFS = (("tests.agent_simulation", 300),)


def _agent(name: str, *edits: Edit) -> Mutation:
    return Mutation(f"agent: {name}", 0, edits, PROOFS)


def _fail(code: str) -> str:
    error = f'ErrorMeta("{code}", "it took too long")'
    return f"return _attempt_failed(call, now_us, FailureVerdict(True), {error}, None, limits=limits)"


_LEFT_ALONE = "TestFailures::test_retry_and_dismissal_of_a_failure_leave_a_later_one_alone"


def _tested(name: str, edit: Edit, test: str = _LEFT_ALONE) -> Mutation:
    caught_by = f"tests/unit/test_agent_orchestration.py::{test}"
    return mutation(f"agent: {name}", 0, edit, caught_by=caught_by)._replace(proofs=())


MUTATIONS = [
    _tested("a failure is retried again", never(CALL + "retry", "execution_id not in (None, call.execution_id)")),
    _tested("a later failure is dismissed", replace(CALL + "dismiss", "call.execution_id != execution_id", by="False")),
    _tested(
        "a job deletes a call that does not match any more",
        never(CHANGE, "only_if is not None and not is_deleted(only_if.filter, call, unit.tags(command.key))"),
        "TestTagsAndDelete::test_a_job_deletes_a_call_only_if_it_still_matches",
    ),
    _agent(
        "a call is retried that has not failed",
        never(CALL + "retry", "call.status is not CallStatus.FAILED"),
    ),
    _agent(
        "the watchdog fails an execution that began",
        rewrite(CALL + "watch", "return Step(after, (check,))", to=_fail("WATCHDOG_TIMEOUT")),
    ),
    _agent(
        "the watchdog fails an execution that has not begun",
        insert(
            CALL + "watch",
            "if waited_us >= limits.start_timeout_us: " + _fail("START_TIMEOUT"),
            before="_start",
        ),
    ),
    _agent(
        "the watchdog repeats orders without a check",
        leave_out(CALL + "watch", "check", in_="_start"),
    ),
    _agent(
        "an end is not reported again", narrow(CHECKS + "ExecutionHandlers._answer", "self._event", and_="row is None")
    ),
    _agent("an execution under way counts as interrupted", never(EXECUTOR + "knows", "self._orders")),
    _agent(
        "an end with a response always counts as a success",
        narrow(EXECUTION + "order:end_event", "end.error_message is not None", and_="response is None"),
    ),
    _agent("an interruption is reported as a failure", never(CHECKS + "logged_event", "INTERRUPTED")),
    _agent("overdue orders are executed", always(EXECUTION + "order:_overdue", "start_timeout_us")),
    _agent(
        "an unknown commit is left to the sweep",
        drop(OUTBOX + "_outcome_unknown", "self._in_doubt_new"),
        drop(OUTBOX + "_outcome_unknown", "self._fall_behind"),
    ),
    _agent(
        "a repeated due time starts a retry early",
        replace(CALL + "due", "call.awaited_at", by="call.due_at"),
    ),
    _agent(
        "a schedule that was reached accepts no later instant",
        replace(
            SCHEDULES + "_IS_LATER",
            "'timer_schedules.due_at < excluded.due_at'",
            by="\"timer_schedules.state = 'Scheduled'\"",
        ),
    ),
    # It costs a call only time, which the watchdog ends, so that the simulation doesn't notice.
    Mutation(
        "agent: the next instant is marked as reached with the last one",
        0,
        (replace(SCHEDULES + "_SAME", "_FIRED", by="KEY"),),
        (),
        ("tests/conformance/test_agent_tables.py::test_a_schedule_is_replaced_only_by_a_later_one",),
    ),
    _agent(
        "a retry is in no trace",
        replace(CALL + "_start", "call.traceparent", by="None if call.attempts else call.traceparent"),
    ),
    _agent(
        "client errors are retried",
        replace(CALL + "judge", "FailureVerdict(True)", by="FailureVerdict(False)"),
    ),
    _agent(
        "the limit of interruptions does not count",
        widen(CALL + "interrupted", "limits.executions_max", or_="call.retry_policy is not None"),
    ),
    _agent(
        "an execution with an uncertain begin counts as another node's",
        never(EXECUTOR + "_begin", "order.execution_id in ours"),
    ),
    _agent(
        "an execution with an unknown begin is sent before it is logged",
        always(EXECUTOR + "_begin", "order.execution_id in added"),
    ),
    # The watchdog orders it again, so that the simulation doesn't notice.
    Mutation(
        "agent: an order that waits for its flow is acknowledged and not stored",
        0,
        (replace(FLOWS + "_suspend", "await self._store.suspend(...)", by="{order.execution_id for order in batch}"),),
        (),
        (
            "tests/integration/agent/test_execution_flows.py::"
            "test_orders_of_a_closed_flow_are_acknowledged_and_begin_in_order_once_it_opens",
        ),
    ),
    _agent(
        "what waited for a flow is not looked for after a restart",
        replace(FLOWS + "__init__", "True, ''", by="False, ''"),
    ),
    _agent("an execution begins and its order goes on waiting", drop(LOG_WRITE, "DELETE_SUSPENDED")),
    _agent("an answer leaves the slot of its flow", drop(EXECUTOR + "_answered", "self._flows.ended(order, result)")),
    _agent("a call that waits for its flow fails after a while", never(EXECUTION + "order:_overdue", "order.is_plain")),
    _agent("a key that could not be read is forgotten", drop(FLOWS + "_read", "self._served_by_round.add(key)")),
    _agent("a token that arrives is not noticed", drop(TURNS + "attach", "self._credentials.attach(self._schedule)")),
    _agent(
        "a request is sent without its credential",
        insert(
            EXECUTOR + "_request",
            """
            if isinstance(found, str):
                self._requester.send(request, partial(self._answered, order))
                return
            """,
            after="found = ...",
        ),
    ),
    _agent(
        "a credential that has gone costs an attempt",
        rewrite(
            EXECUTOR + "_request",
            "self._without_credential.append(order)",
            to='self._answered(order, Result(NoResponse("CREDENTIAL_NOT_READY", final=True), None, 0))',
        ),
    ),
]
