"""Turns a specified request into the request that is sent, and into the row that the log keeps of it."""

from __future__ import annotations

import msgspec

from tocsin.model.answer import NoResponse
from tocsin.model.redaction import redact_url
from tocsin.ports.http import Request
from tocsin.service_calls.execution.order import Order
from tocsin.service_calls.execution.ports import ExecutionStart
from tocsin.service_calls.execution.redaction import cut_text, redact_header, secrets_of, snippet
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import RequestSpec, ordered_at

CORRELATION_HEADER = "x-correlation-id"
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"

_decode_text = msgspec.json.Decoder(str).decode
_decode_json = msgspec.json.Decoder(msgspec.Raw).decode


def prepare(order: Order, now_us: int, limits: AgentLimits) -> ExecutionStart:
    """Gives the order its request and its secrets. Returns the log row with which its execution begins."""
    spec = order.spec
    headers = _headers(spec, order.correlation_id)
    body, problem = b"", _overdue(order, now_us, limits)
    if not isinstance(spec.body, msgspec.UnsetType):
        try:
            body, content_type = encode_body(spec.body)
        except (msgspec.DecodeError, UnicodeError) as error:  # Only for a message that did not come from the API.
            problem = NoResponse("INVALID_REQUEST", f"the body is not JSON: {error}", final=True)
        else:
            if not _brings(headers, "content-type"):
                headers.append(("content-type", content_type))
    has_body = not isinstance(spec.body, msgspec.UnsetType)
    pairs = tuple(headers)
    order.secrets = secrets_of(spec.url, pairs)
    order.request = problem or Request(
        spec.method, spec.url, pairs, body if has_body else None, limits.request_timeout_us
    )
    bytes_max = limits.snippet_bytes_max
    return ExecutionStart(
        tenant_id=order.tenant_id,
        service_call_id=order.service_call_id,
        execution_id=order.execution_id,
        correlation_id=order.correlation_id,
        started_at=now_us,
        request_url=cut_text(redact_url(spec.url), bytes_max).text,
        request_method=spec.method,
        request_headers={name: redact_header(name, value, bytes_max) for name, value in pairs},
        request_body=snippet(body, bytes_max, order.secrets).text if has_body else None,
    )


def _overdue(order: Order, now_us: int, limits: AgentLimits) -> NoResponse | None:
    """Why it is too late to begin, or None. The execution log records this: a call that failed for this reason cannot
    be executed by an order that arrives later."""
    waited_us = now_us - ordered_at(order.execution_id)
    if waited_us < limits.start_timeout_us:
        return None
    return NoResponse("START_TIMEOUT", f"the execution had not begun {waited_us / 1e6:.0f} s after it was ordered")


def encode_body(body: msgspec.Raw) -> tuple[bytes, str]:
    """The bytes of a body and their content type: a JSON string is sent as its text, any other value as JSON.

    Raises msgspec.DecodeError or UnicodeError if it is not JSON.
    """
    raw = bytes(body).strip()
    if not raw.startswith(b'"'):
        return raw, _JSON
    data = _decode_text(raw).encode()
    try:
        _decode_json(data)
    except (msgspec.DecodeError, RecursionError):
        return data, _TEXT
    return data, _JSON


def _headers(spec: RequestSpec, correlation_id: str) -> list[tuple[str, str]]:
    headers = list(spec.headers.items())
    # A correlation id that no header can carry is left out here; messages and rows still have it.
    if (
        correlation_id
        and correlation_id.isascii()
        and correlation_id.isprintable()
        and not _brings(headers, CORRELATION_HEADER)
    ):
        headers.append((CORRELATION_HEADER, correlation_id.strip()))
    return headers


def _brings(headers: list[tuple[str, str]], name: str) -> bool:
    return any(len(own) == len(name) and own.lower() == name for own, _ in headers)
