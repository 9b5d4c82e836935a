"""Each promise about a call's outcome, dropped or changed in the source: what the agent's simulation must notice."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

CALL = "agent/orchestration/service_call.py"
VERDICT = "agent/orchestration/verdict.py"
SCHEDULES = "agent/adapters/sql/timer_schedules.py"
CHECKS = "agent/execution/checks.py"
OUTGOING = "agent/execution/outgoing.py"
EXECUTOR = "agent/execution/executor.py"
OUTBOX = "agent/outbox/dispatcher.py"

#: Where these are hunted, with how many seeds.
PROOFS = (("tests.agent_simulation", 300),)


def _one(name: str, file: str, old: str, new: str) -> Mutation:
    return Mutation(f"agent: {name}", 0, [(file, old, new)], PROOFS)


_FAIL = '        return _fail(call, now_us, ErrorMeta("{}", "it took too long"))\n'
_CHECK = "    if begun:\n        return Step(after, (check,))\n"

MUTATIONS = [
    _one("the watchdog fails what began", CALL, _CHECK, "    if begun:\n" + _FAIL.format("WATCHDOG_TIMEOUT")),
    _one(
        "the watchdog fails what has not begun",
        CALL,
        _CHECK,
        _CHECK + "    if waited_us >= limits.start_timeout_us:\n" + _FAIL.format("START_TIMEOUT"),
    ),
    _one(
        "only orders are repeated, nothing is asked",
        CALL,
        "return Step(after, (check, StartExecution(",
        "return Step(after, (StartExecution(",
    ),
    _one(
        "an end is not reported again",
        CHECKS,
        "            elif (event := self._event(check, row)) is not None:",
        "            elif row is None and (event := self._event(check, row)) is not None:",
    ),
    _one("what is under way is taken for interrupted", EXECUTOR, "return execution_id in self._orders", "return False"),
    _one(
        "any reported end is a success",
        CHECKS,
        "    if end.error_message is not None:\n",
        "    if end.error_message is not None and response is None:\n",
    ),
    _one(
        "an interruption is reported as a failure",
        CHECKS,
        "if end.error_message == INTERRUPTED:",
        "if end.error_message == 0:",
    ),
    _one(
        "late orders are executed",
        OUTGOING,
        "    if waited_us < limits.start_timeout_us:\n        return None\n",
        "    return None\n",
    ),
    _one(
        "an unknown commit is left to the sweep",
        OUTBOX,
        "            self._in_doubt_new.update(row.envelope.aggregate_id for row in rows)\n            self._fall_behind()\n",
        "            pass\n",
    ),
    _one(
        "a due time that comes again starts a retry early",
        CALL,
        "due_at_us < call.awaited_at:",
        "due_at_us < call.due_at:",
    ),
    _one(
        "a schedule that was reached takes no later instant",
        SCHEDULES,
        "        where=_schedules.due_at < insert.excluded.due_at,\n",
        "        where=_waits,\n",
    ),
    # It costs a call only time, which the watchdog ends, so that the simulation doesn't notice.
    Mutation(
        "agent: the next instant is marked with the last one",
        0,
        [
            (
                SCHEDULES,
                "given.names(timer_schedules, *_FIRED), _schedules.state",
                "given.names(timer_schedules, *_KEY), _schedules.state",
            )
        ],
        (),
        ("tests/conformance/test_agent_tables.py::test_a_schedule_is_replaced_only_by_a_later_one",),
    ),
    _one(
        "client errors are tried again",
        VERDICT,
        "        return Verdict(True)\n",
        "        return Verdict(False)\n",
    ),
    _one(
        "what was interrupted too often is not counted",
        CALL,
        "if call.executions - call.attempts < limits.executions_max:",
        "if call.executions - call.attempts < limits.executions_max or call.retry_policy is not None:",
    ),
    _one("an uncertain beginning is taken for another's", EXECUTOR, "if order.execution_id in ours:", "if False:"),
    _one(
        "an unknown beginning is sent before it is logged",
        EXECUTOR,
        "                if order.execution_id in added:\n",
        "                if True:\n",
    ),
]
