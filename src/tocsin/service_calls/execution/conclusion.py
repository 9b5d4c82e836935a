"""Turns the result of a request into the end of its log row and the event that reports it."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.ports.http import Reply, Result
from tocsin.service_calls.execution.order import Order
from tocsin.service_calls.execution.ports import ExecutionEnd
from tocsin.service_calls.execution.redaction import cut_text, redact_header, snippet, without_secrets
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import ErrorMeta, ExecutionFailed, ExecutionSucceeded, ResponseMeta

SUCCEEDED = "succeeded"
HTTP_STATUS = "HTTP_STATUS"


class Conclusion(NamedTuple):
    """`result` is `succeeded` or the kind of the error."""

    result: str
    end: ExecutionEnd
    event: ExecutionSucceeded | ExecutionFailed


def conclude(order: Order, result: Result, now_us: int, limits: AgentLimits) -> Conclusion:
    """A 2xx response is a success. Any other response, or none, is a failure."""
    outcome = result.outcome
    latency_ms = round(result.duration_us / 1_000, 3)
    if isinstance(outcome, Reply):
        response = _response_meta(order, outcome, latency_ms, limits)
        if 200 <= outcome.status < 300:
            succeeded = ExecutionSucceeded(order.service_call_id, order.execution_id, now_us, response)
            return Conclusion(SUCCEEDED, _end(order, now_us, response, None), succeeded)
        error = ErrorMeta(HTTP_STATUS, f"HTTP {outcome.status}", latency_ms)
    else:
        response = None
        detail = cut_text(outcome.detail, limits.snippet_bytes_max).text
        error = ErrorMeta(outcome.code, detail, latency_ms)
    failed = ExecutionFailed(order.service_call_id, order.execution_id, now_us, error, response)
    return Conclusion(error.kind, _end(order, now_us, response, error), failed)


def _response_meta(order: Order, reply: Reply, latency_ms: float, limits: AgentLimits) -> ResponseMeta:
    kept = snippet(reply.body, limits.snippet_bytes_max, order.secrets)
    return ResponseMeta(
        status=reply.status,
        headers=_headers(order, reply, limits),
        body_snippet=kept.text,
        latency_ms=latency_ms,
        truncated=kept.cut or reply.truncated,
    )


def _headers(order: Order, reply: Reply, limits: AgentLimits) -> dict[str, str]:
    headers: dict[str, str] = {}
    received = reply.headers[: limits.response_headers_max]
    values = without_secrets([value for _, value in received], order.secrets)
    for (name, _), value in zip(received, values, strict=True):
        folded = cut_text(name.lower(), limits.snippet_bytes_max).text
        kept = redact_header(folded, value, limits.snippet_bytes_max)
        headers[folded] = f"{headers[folded]}, {kept}" if folded in headers else kept
    return headers


def _end(order: Order, now_us: int, response: ResponseMeta | None, error: ErrorMeta | None) -> ExecutionEnd:
    return ExecutionEnd(
        tenant_id=order.tenant_id,
        service_call_id=order.service_call_id,
        execution_id=order.execution_id,
        finished_at=now_us,
        response_status=response.status if response is not None else None,
        response_headers=response.headers if response is not None else None,
        response_body=response.body_snippet if response is not None else None,
        error_message=_error_text(error) if error is not None else None,
    )


def _error_text(error: ErrorMeta) -> str:
    return f"{error.kind}: {error.message}" if error.message else error.kind


def error_of(text: str, latency_ms: float) -> ErrorMeta:
    """The error that `error_message` of a log row describes."""
    kind, _, message = text.partition(": ")
    return ErrorMeta(kind, message, latency_ms)
