"""Composes the request of a callback as bytes. `docs/reference/callbacks.md` describes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from urllib.parse import quote

import msgspec

from tocsin import __version__
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.target import Target
from tocsin.model.instants import US_PER_SECOND, format_instant
from tocsin.model.secrets import InvalidSecret, signatures
from tocsin.model.timer import BODILESS_METHODS, ENVELOPE_HEADERS, JSON_TYPE, RawBody
from tocsin.model.validation import METHODS, folded, is_reserved_header
from tocsin.ports.http import Invocation

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?", re.ASCII)
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


class InvalidRequest(ValueError):
    """No valid request can be composed. `code` is the NoResponse code; `final`: a retry can't succeed."""

    def __init__(self, detail: str, code: str = "INVALID_REQUEST", final: bool = True) -> None:
        super().__init__(detail)
        self.code = code
        self.final = final


class _Body(msgspec.Struct, rename="camel", gc=False):
    namespace: str
    timer_id: str
    execute_at: str
    fired_at: str
    attempt: int
    payload: msgspec.Raw


class _Item(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """A timer of a batch."""

    webhook_id: str
    namespace: str
    timer_id: str
    execute_at: str
    fired_at: str
    attempt: int
    payload: msgspec.Raw
    traceparent: str | None = None


class _Batch(msgspec.Struct):
    items: list[_Item]


_encode = msgspec.json.Encoder().encode


def check_headers(headers: Mapping[str, str], limits: CallbackLimits | None = None) -> list[str]:
    """The errors in a timer's own headers, one reason for each invalid header; empty if they can be sent.

    Names are tokens, values visible ASCII with inner spaces: nothing that could end a line. Framing, `tocsin-…` and
    `webhook-…` headers are reserved.
    """
    return check(headers.items(), limits or CallbackLimits())


def check(headers: Collection[tuple[str, str]], limits: CallbackLimits) -> list[str]:
    """The errors in headers; if they are too many or too long, only that."""
    return check_size(headers, limits) or check_form(headers)


def check_form(headers: Collection[tuple[str, str]]) -> list[str]:
    """The errors in names and values."""
    reasons = []
    seen: set[str] = set()
    for name, value in headers:
        if _TOKEN.fullmatch(name) is None:
            reasons.append(f"{name!r} is not a header name")
        elif is_reserved_header(name):
            reasons.append(f"{name} is set by the server; leave it out")
        elif folded(name) in seen:
            reasons.append(f"{name} is given twice")
        if _VALUE.fullmatch(value) is None:
            reasons.append(
                f"{name!r} has a value with characters other than visible ASCII, or with leading or trailing space"
            )
        seen.add(folded(name))
    return reasons


def check_size(headers: Collection[tuple[str, str]], limits: CallbackLimits) -> list[str]:
    """The errors in number and size."""
    reasons = []
    if len(headers) > limits.request_headers_max:
        reasons.append(f"there are {len(headers)} headers; at most {limits.request_headers_max} are accepted")
    total_bytes = sum(len(name) + len(value) for name, value in headers)
    if total_bytes > limits.request_header_bytes_max:
        reasons.append(
            f"they have {total_bytes} bytes in total; at most {limits.request_header_bytes_max} are accepted"
        )
    return reasons


def compose(invocation: Invocation, target: Target, now_us: int, limits: CallbackLimits) -> bytes:
    """Head and body of the request. `now_us`, wall clock, becomes the `webhook-timestamp`.

    The timer's own headers replace the default content-type, user-agent and traceparent; its credential replaces its own
    authorization. An invalid traceparent is left out, as W3C Trace Context requires. Raises InvalidRequest.
    """
    body = b"" if invocation.method in BODILESS_METHODS else body_of(invocation)
    timestamp_s = now_us // US_PER_SECOND
    headers = invocation.headers
    media_type = JSON_TYPE if invocation.body is None else invocation.body.content_type
    head = (
        _head_with(invocation, target, media_type, limits) if headers else _head(invocation.method, target, media_type)
    )
    if invocation.body is not None:
        head += "".join(f"{name}: {value}\r\n" for name, value in envelope_headers(invocation))
    if invocation.identity is not None and invocation.identity.authorization:
        head += f"authorization: {_authorization(invocation.identity.authorization)}\r\n"
    message_id = invocation.message_id
    if not (message_id.isascii() and message_id.isprintable()):
        raise InvalidRequest("the message id is not a valid header value")
    head += f"webhook-id: {message_id}\r\nwebhook-timestamp: {timestamp_s}\r\n"
    if invocation.secrets:
        head += f"webhook-signature: {signature_of(invocation, timestamp_s, body)}\r\n"
    trace = invocation.traceparent
    if trace is not None and TRACEPARENT.fullmatch(trace) and not _has_header(headers, "traceparent"):
        head += f"traceparent: {trace}\r\n"
    if invocation.method in BODILESS_METHODS:
        return (head + "\r\n").encode("ascii")
    return f"{head}content-length: {len(body)}\r\n\r\n".encode("ascii") + body


def body_of(invocation: Invocation) -> bytes:
    """The timer's own body, or the envelope with its payload, or the envelopes of a batch. Raises InvalidRequest."""
    if invocation.body is not None:
        return _raw(invocation.body)
    try:
        if invocation.items is not None:
            # They are sent together, so they fire at the same instant.
            fired_at, texts = format_instant(invocation.fired_at), _Texts()
            return _encode(_Batch([_item(each, texts[each.execute_at], fired_at) for each in invocation.items]))
        return _encode(
            _Body(
                invocation.namespace,
                invocation.timer_id,
                format_instant(invocation.execute_at),
                format_instant(invocation.fired_at),
                invocation.attempt,
                invocation.payload,
            )
        )
    except (UnicodeEncodeError, OverflowError) as error:
        raise InvalidRequest(f"the body can't be encoded: {error}") from error


class _Texts(dict[int, str]):
    """The texts of instants: many timers of a batch are due together."""

    def __missing__(self, instant_us: int) -> str:
        text = self[instant_us] = format_instant(instant_us)
        return text


def _item(invocation: Invocation, execute_at: str, fired_at: str) -> _Item:
    trace = invocation.traceparent
    return _Item(
        invocation.message_id,
        invocation.namespace,
        invocation.timer_id,
        execute_at,
        fired_at,
        invocation.attempt,
        invocation.payload,
        trace if trace is not None and TRACEPARENT.fullmatch(trace) else None,
    )


def signature_of(invocation: Invocation, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`. Raises InvalidRequest."""
    try:
        return signatures(invocation.secrets, invocation.message_id, timestamp_s, body)
    except InvalidSecret as error:
        raise InvalidRequest(f"the namespace's secret {error}", "INVALID_SECRET", final=False) from error


def _raw(body: RawBody) -> bytes:
    try:
        return body.sent()
    except ValueError as error:
        raise InvalidRequest(f"the body can't be encoded: {error}") from error


def envelope_headers(invocation: Invocation) -> tuple[tuple[str, str], ...]:
    """The headers with the envelope's fields. Ids may have any characters, and are percent-encoded UTF-8."""
    values = (
        invocation.namespace,
        quote(invocation.timer_id, safe=""),
        format_instant(invocation.execute_at),
        format_instant(invocation.fired_at),
        str(invocation.attempt),
    )
    return tuple(zip(ENVELOPE_HEADERS, values, strict=True))


@lru_cache(maxsize=1_024)
def _head(method: str, target: Target, media_type: str) -> str:
    """The lines common to every request of a content type to a target."""
    return _request_line(method, target) + "".join(_own_lines(method, media_type))


def _head_with(invocation: Invocation, target: Target, media_type: str, limits: CallbackLimits) -> str:
    method, headers = invocation.method, invocation.headers or {}
    reasons = check_headers(headers, limits)
    if reasons:
        raise InvalidRequest("headers: " + "; ".join(reasons))
    own = [line for line in _own_lines(method, media_type) if not _has_header(headers, line.partition(":")[0])]
    replaced = invocation.identity is not None and invocation.identity.authorization
    theirs = [
        f"{name}: {value}\r\n" for name, value in headers.items() if not (replaced and folded(name) == "authorization")
    ]
    return _request_line(method, target) + "".join(own + theirs)


def _authorization(value: str) -> str:
    if _VALUE.fullmatch(value) is None:
        raise InvalidRequest("the credential has characters other than visible ASCII")
    return value


def _request_line(method: str, target: Target) -> str:
    if method not in METHODS:
        raise InvalidRequest(f"{method!r} is not a method for callbacks; use one of {', '.join(METHODS)}")
    return f"{method} {target.path} HTTP/1.1\r\nhost: {target.host_header}\r\n"


def _own_lines(method: str, media_type: str) -> list[str]:
    # Responses are not decompressed: they are short, and compression would allow decompression bombs.
    lines = [f"user-agent: tocsin/{__version__}\r\n", "accept-encoding: identity\r\n"]
    if method not in BODILESS_METHODS:
        lines.append(f"content-type: {media_type}\r\n")
    return lines


def _has_header(headers: Mapping[str, str] | None, name: str) -> bool:
    return headers is not None and any(folded(own) == name for own in headers)
