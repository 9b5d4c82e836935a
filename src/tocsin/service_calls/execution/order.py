"""One order to execute: the request that it sends, and how its execution ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tocsin.model.answer import NoResponse
from tocsin.model.redaction import echoes, redact_url, secrets_of
from tocsin.model.sealed import headers_opened, url_opened
from tocsin.model.secrets import SigningSecrets
from tocsin.model.validation import folded
from tocsin.ports.bus import Delivery, Envelope
from tocsin.ports.credentials import SentIdentity
from tocsin.ports.flow_gate import FlowHold
from tocsin.ports.http import CallTrace, Reply, Request, Result
from tocsin.ports.seals import NoSeals, SealBroken, Seals, opener
from tocsin.service_calls.execution.redaction import cut_text, redact_header, snippet, without_secrets
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    STALE_TOKEN,
    ErrorMeta,
    ExecutionFailed,
    ExecutionSucceeded,
    Instant,
    RequestSpec,
    ResponseMeta,
    StartExecution,
    ordered_at,
)
from tocsin.service_calls.ports import ExecutionEnd, ExecutionStart

CORRELATION_HEADER = "x-correlation-id"
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_NO_SEALS = NoSeals()

_decode_text = msgspec.json.Decoder(str).decode
_decode_json = msgspec.json.Decoder(msgspec.Raw).decode


@dataclass(slots=True, eq=False)
class Order:
    """An order passes through these stages: waiting (for its flow, for its destination), beginning (with `request`),
    in flight (`logged`), ending (with `end`)."""

    envelope: Envelope
    message: StartExecution
    destination: str
    #: Acknowledged together once the execution is logged. Several if the order was delivered again before that.
    deliveries: list[Delivery]
    #: The request, or why it cannot be sent.
    request: Request | NoResponse | None = None
    #: The secrets that sign the request; None: it is not signed.
    signing: SigningSecrets | None = None
    #: Secrets in the request, to be redacted in the response.
    secrets: tuple[bytes, ...] = ()
    end: tuple[ExecutionEnd, Envelope] | None = None
    duration_us: int = 0
    logged: bool = False
    #: How often the request did not leave this machine.
    not_sent: int = 0
    #: The starts whose logging had an unknown outcome: the log may contain one of them.
    uncertain_starts: set[int] = field(default_factory=set)
    #: It is in the table of orders that wait for their turn, and its deliveries are acknowledged.
    suspended: bool = False
    #: What its attempt has taken of its flow.
    hold: FlowHold | None = None
    #: What its request has identified itself with.
    identity: SentIdentity | None = None

    @property
    def execution_id(self) -> str:
        """The id of its execution."""
        return self.message.execution_id

    @property
    def credential(self) -> str | None:
        """The name of its request's credential."""
        return self.message.request_spec.credential

    @property
    def place(self) -> str:
        """The key of the place where it waits for its turn."""
        return Place(self.message.flow_key, self.credential, self.destination).key

    @property
    def is_plain(self) -> bool:
        """Whether it waits for nothing but a slot of its destination."""
        return self.message.flow_key is None and self.credential is None

    @property
    def key(self) -> tuple[str, str, str]:
        """Tenant, call and execution: the log's key."""
        return self.envelope.tenant_id, self.message.service_call_id, self.message.execution_id

    @property
    def about(self) -> tuple[str, str, str, str, str]:
        """Tenant, call, correlation id, execution and destination, as in its events."""
        tenant_id, service_call_id, execution_id = self.key
        return tenant_id, service_call_id, self.envelope.correlation_id, execution_id, self.destination


class Place(NamedTuple):
    """Where orders wait: for a flow, for a credential at a destination, for both, or for a destination alone. No order
    changes its place: whether its credential can be sent decides when a place is open, not where the order is."""

    flow: str | None
    credential: str | None = None
    destination: str = ""

    @property
    def key(self) -> str:
        """Its key: the flow's, or credential, destination and flow with spaces between them, which are in none of these. That
        of a destination alone begins with a space."""
        if self.credential is not None:
            return " ".join((self.credential, self.destination, *(() if self.flow is None else (self.flow,))))
        return f" {self.destination}" if self.flow is None else self.flow

    @classmethod
    def of(cls, key: str) -> Place:
        """The place of a key."""
        if key.startswith(" "):
            return cls(None, None, key[1:])
        first, *others = key.split(" ", 2)
        return cls(others[1] if len(others) == 2 else None, first, others[0]) if others else cls(first)


# ------------------------------------------------------------------ the request


def identified(order: Order, request: Request, found: SentIdentity) -> Request:
    """The order's request with what it identifies itself with, whose secrets are redacted in the response, too."""
    order.identity = found
    order.secrets = tuple(sorted({*order.secrets, *echoes(found.secrets)}, key=len, reverse=True))
    authorization, headers = found.identity.authorization, request.headers
    if authorization:
        kept = (pair for pair in headers if pair[0].lower() != "authorization")
        headers = (*kept, ("authorization", authorization))
    return request._replace(headers=headers, tls=found.identity.tls)


def prepare(order: Order, now_us: int, limits: AgentLimits, seals: Seals = _NO_SEALS) -> ExecutionStart:
    """Gives the order its request and its secrets. Returns the log row with which its execution begins."""
    body, problem = b"", _overdue(order, now_us, limits)
    spec = order.message.request_spec
    try:
        spec = _opened(spec, opener(seals, order.envelope.tenant_id, "tenant"))
    except SealBroken as error:
        problem = unopened(error)
    headers = _headers(spec, order.envelope.correlation_id)
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
        spec.method, spec.url, pairs, body if has_body else None, limits.request_timeout_us, trace=_trace(order)
    )
    bytes_max = limits.snippet_bytes_max
    return ExecutionStart(
        *order.key,
        correlation_id=order.envelope.correlation_id,
        started_at=now_us,
        request_url=cut_text(redact_url(spec.url), bytes_max).text,
        request_method=spec.method,
        request_headers={name: redact_header(name, value, bytes_max) for name, value in pairs},
        request_body=snippet(body, bytes_max, order.secrets).text if has_body else None,
    )


def unopened(error: SealBroken) -> NoResponse:
    """The outcome of a call one of whose secrets can't be opened. People can retry it after the mend."""
    return NoResponse("SECRET_UNREADABLE", f"a secret of the request can't be decrypted: {error}", final=True)


def _opened(spec: RequestSpec, unseal: Callable[[str], str]) -> RequestSpec:
    headers = headers_opened(spec.headers, unseal) or {}
    return msgspec.structs.replace(spec, url=url_opened(spec.url, unseal), headers=headers)


def _trace(order: Order) -> CallTrace | None:
    traceparent = order.message.traceparent
    return None if traceparent is None else CallTrace(traceparent, *order.key)


def _overdue(order: Order, now_us: int, limits: AgentLimits) -> NoResponse | None:
    """Why it is too late to begin, or None. The execution log records this: a call that failed for this reason cannot
    be executed by an order that arrives later. What waits for a flow or a credential is never too late: that costs no
    attempt."""
    if not order.is_plain:
        return None
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
    return any(len(own) == len(name) and folded(own) == name for own, _ in headers)


# ------------------------------------------------------------------ the end


def conclude(
    order: Order, result: Result, now_us: int, limits: AgentLimits, *, stale_token: bool = False
) -> tuple[ExecutionEnd, ExecutionSucceeded | ExecutionFailed]:
    """The end of the log row, and the event that reports it. A 2xx response is a success. Any other response, or none,
    is a failure. `stale_token`: it is a 401 for which the token alone may be the reason."""
    outcome, truncated = result.outcome, False
    if isinstance(outcome, Reply):
        kept = snippet(outcome.body, limits.snippet_bytes_max, order.secrets)
        message = STALE_TOKEN if stale_token else f"HTTP {outcome.status}"
        error = None if 200 <= outcome.status < 300 else f"HTTP_STATUS: {message}"
        end = ExecutionEnd(
            *order.key, now_us, outcome.status, _received_headers(order, outcome, limits), kept.text, error
        )
        truncated = kept.cut or outcome.truncated
    else:
        detail = cut_text(outcome.detail, limits.snippet_bytes_max).text
        error = f"{outcome.code}: {detail}" if detail else outcome.code
        end = ExecutionEnd(*order.key, now_us, None, None, None, error)
    return end, end_event(end, round(result.duration_us / 1_000, 3), truncated)


def end_event(end: ExecutionEnd, latency_ms: float, truncated: bool) -> ExecutionSucceeded | ExecutionFailed:
    """The event for an end. `truncated`: the body was longer than what the end has of it."""
    response = None
    if end.response_status is not None:
        response = ResponseMeta(
            end.response_status, end.response_headers or {}, end.response_body or "", latency_ms, truncated
        )
    if end.error_message is not None:
        kind, _, message = end.error_message.partition(": ")
        error = ErrorMeta(kind, message, latency_ms)
        return ExecutionFailed(end.service_call_id, end.execution_id, Instant(end.finished_at), error, response)
    assert response is not None
    return ExecutionSucceeded(end.service_call_id, end.execution_id, Instant(end.finished_at), response)


def _received_headers(order: Order, reply: Reply, limits: AgentLimits) -> dict[str, str]:
    headers: dict[str, str] = {}
    received = reply.headers[: limits.response_headers_max]
    values = without_secrets([value for _, value in received], order.secrets)
    for (name, _), value in zip(received, values, strict=True):
        folded = cut_text(name.lower(), limits.snippet_bytes_max).text
        kept = redact_header(folded, value, limits.snippet_bytes_max)
        headers[folded] = f"{headers[folded]}, {kept}" if folded in headers else kept
    return headers
