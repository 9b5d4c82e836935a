"""Checks outcomes: what the agent reports of each call, against what its service received and answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.model.instants import parse_duration, parse_instant
from tocsin.model.retry import RetryPolicy
from tocsin.service_calls.messages import ordered_at

if TYPE_CHECKING:
    from .clients import Client
    from .world import World

_END = ("ServiceCallSucceeded", "ServiceCallFailed")
_CALLS = "SELECT service_call_id, status, due_at, outcome_meta, execution_id, executions, attempts FROM service_calls"
_LOG = """
    SELECT service_call_id, execution_id, started_at, finished_at, response_status, response_body, error_message
    FROM http_execution_log ORDER BY started_at
"""
_OUTBOX = "SELECT aggregate_id, envelope_id, event_type FROM outbox ORDER BY id"


class _Call(NamedTuple):
    status: str
    due_at: int
    outcome: dict[str, Any]
    execution_id: str
    executions: int
    attempts: int
    log: list[_Execution]
    messages: list[tuple[str, str]]


class _Execution(NamedTuple):
    execution_id: str
    started_at: str
    finished_at: str | None
    status: str | None
    body: str | None
    error: str | None

    @property
    def final(self) -> bool:
        """Whether no other execution may follow by itself: it succeeded, or it was a client error."""
        return self.status is not None and self.status[0] in "24"

    @property
    def interrupted(self) -> bool:
        return self.error is not None and self.error.startswith("interrupted")

    def late(self, start_timeout_us: int) -> bool:
        """Whether it began after its start timeout."""
        waited_us = parse_instant(self.started_at) - ordered_at(self.execution_id)
        return waited_us >= start_timeout_us and not (self.error or "").startswith("START_TIMEOUT")


def check_outcomes(world: World) -> None:
    """Reports outcomes that are wrong or missing."""
    log: dict[Any, list[_Execution]] = {}
    for call_id, *rest in world.tables.rows(_LOG):
        log.setdefault(call_id, []).append(_Execution(*rest))  # type: ignore[arg-type]
    messages: dict[Any, list[Any]] = {}
    for call_id, *message in world.tables.rows(_OUTBOX):
        messages.setdefault(call_id, []).append(tuple(message))
    calls = {
        call_id: _Call(
            status, parse_instant(due_at), json.loads(outcome or "{}"), execution_id, executions, attempts,
            log.get(call_id, []), messages.get(call_id, []),
        )
        for call_id, status, due_at, outcome, execution_id, executions, attempts in world.tables.rows(_CALLS)  # type: ignore
    }  # fmt: skip
    for client in world.clients:
        call = calls.get(client.call_id)
        problem = _deleted(world, client) if call is None else _judge(world, client, call)
        if problem is not None:
            world.broken(*problem)
            return


def _deleted(world: World, client: Client) -> tuple[str, str] | None:
    if client.accepted and client.deleted is False:
        return "LOST", f"call {client.number} was accepted and is gone"
    if client.policy is None and client.number in world.receivers.arrivals:
        return "AFTER DELETE", f"call {client.number} was deleted, and arrived"
    if client.deleted is True and world.receivers.sent_at.get(client.number, 0) > client.deleted_at:
        return "AFTER DELETE", f"call {client.number} was deleted while it waited, and was tried again"
    return None


def _judge(world: World, client: Client, call: _Call) -> tuple[str, str] | None:
    number = client.number
    what = f"call {number} {client.call_id}: {call}"
    if client.deleted is True:
        return "NOT DELETED", what
    if call.status not in ("Succeeded", "Failed"):
        return "STUCK", what
    if not client.retries < sum(kind in _END for _, kind in call.messages) <= 1 + client.retries_asked:
        return "ENDS", what
    arrivals = world.receivers.arrivals.get(number, [])
    sent = world.receivers.sent.get(number, 0)
    interrupted = sum(execution.interrupted for execution in call.log)
    if arrivals and arrivals[0] < call.due_at:
        return "EARLY", what
    if sent > len(call.log):
        return "TWICE", f"sent {sent} times; {what}"
    if client.credential is not None and sent < len(call.log) - interrupted:
        return "NO TOKEN", f"sent {sent} times; {what}"
    if (problem := _against_policy(world, client, call)) is not None:
        return "ATTEMPTS", f"{problem}; {what}"
    if interrupted and not world.mortal:
        return "INTERRUPTED BY NOBODY", what
    timed_out = any((execution.error or "").startswith("START_TIMEOUT") for execution in call.log)
    late = any(execution.late(world.limits.start_timeout_us) and not execution.interrupted for execution in call.log)
    # What waits for a flow or a credential is never too late.
    if timed_out if (client.flow_key or client.credential) is not None else late:
        return "TOO LATE", what
    if not _in_order(world, client, call):
        return "ORDER", f"{world.posts.get(client.call_id)}; {what}"
    problem = _untrue(world, number, call, interrupted, sent)
    return None if problem is None else ("UNTRUE", f"{problem}; {what}")


def _against_policy(world: World, client: Client, call: _Call) -> str | None:
    """How the executions of a call violate its retry policy."""
    policy = RetryPolicy(max_attempts=1)
    if client.policy is not None:
        most, initial = client.policy.max_attempts, parse_duration(client.policy.initial_interval or "")
        policy = RetryPolicy(most or 1, None, initial, 2.0, 60_000_000)
    attempts, forgiven, earliest, over, retries = 0, 0, 0, False, 0
    for execution in call.log:
        if over and retries == client.retries_asked:
            return "it was made again after its end"
        if over:
            retries, earliest, over = retries + 1, 0, False
        if parse_instant(execution.started_at) < earliest:
            return f"execution {execution.execution_id} began early"
        earliest = 0
        if execution.interrupted and forgiven + 1 < world.limits.executions_max:
            forgiven += 1
            continue
        attempts += 1
        over = execution.final or attempts >= policy.max_attempts
        earliest = parse_instant(execution.finished_at or "") + policy.delay_us(attempts, 1.0)
    if retries < client.retries:
        return f"{client.retries} retries were acknowledged"
    if attempts != call.attempts:
        return f"there were {attempts} attempts"
    return None if over else "it ended before its last attempt"


def _in_order(world: World, client: Client, call: _Call) -> bool:
    committed = [envelope_id for envelope_id, _ in call.messages]
    known = set(committed)
    return [id_ for id_ in world.posts.get(client.call_id, []) if id_ in known] == committed


def _untrue(world: World, number: int, call: _Call, interrupted: int, sent: int) -> str | None:
    """How the reported outcome is wrong."""
    results = world.receivers.results.get(number, {})
    kind = call.outcome.get("errorMeta", {}).get("kind", "")
    if kind == "INTERRUPTED":
        # `_against_policy` has checked the number of attempts.
        return None if interrupted and call.log[-1].interrupted else "it was not interrupted"
    last = next((e for e in call.log if e.execution_id == call.execution_id), None)
    if last is None or last.finished_at is None:
        return "the log has no end of the execution that it names"
    if kind == "START_TIMEOUT":
        late = sum((execution.error or "").startswith("START_TIMEOUT") for execution in call.log)
        return None if sent <= len(call.log) - late else "it was sent"
    if call.status == "Succeeded" or kind == "HTTP_STATUS":
        body = call.outcome["responseMeta"]["bodySnippet"]
        answer = world.receivers.answers.get(body)
        if answer is None or answer.call != number or body != last.body or str(answer.status) != last.status:
            return f"the service gave {answer}"
        return None if (answer.status < 300 and answer.status >= 200) == (call.status == "Succeeded") else str(answer)
    return None if results and results[max(results)] == kind else f"the client got {results}"
