"""Composes a service call's request as bytes: the caller's content and its framing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tocsin import __version__
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import TRACEPARENT, InvalidRequest, check, check_form
from tocsin.http_client.target import InvalidUrl, Target, parse_url
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.secrets import InvalidSecret, signatures
from tocsin.model.timer import BODILESS_METHODS
from tocsin.model.validation import folded
from tocsin.ports.http import Request, Signing

#: Methods of service calls; without CONNECT and TRACE, which are for proxies.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
#: Idempotent methods: their requests may be sent twice (RFC 9110 section 9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
#: Methods that anticipate a body: without one, content-length: 0 must be sent (RFC 9110 section 8.6).
_LENGTH_REQUIRED = frozenset({"POST", "PUT", "PATCH"})


def check_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: CallbackLimits | None = None
) -> list[tuple[str, str]]:
    """The errors in a service call's request: the field (`method`, `url`, `headers`, `body`) and the reason, phrased to
    follow the field's name. Empty if the request can be sent. EgressPolicy decides separately whether the target is allowed.
    """
    problems = []
    if method not in METHODS:
        problems.append(("method", _bad_method(method)))
    try:
        parse_url(url)
    except InvalidUrl as error:
        problems.append(("url", str(error)))
    problems += [("headers", reason) for reason in check(headers.items(), limits or CallbackLimits())]
    if body is not None and method in BODILESS_METHODS:
        problems.append(("body", _no_body(method)))
    return problems


def compose_plain(request: Request, target: Target, now_us: int) -> bytes:
    """Head and body of the request. Its own headers keep their order; a user-agent or traceparent among them replaces the
    default. An invalid traceparent of its trace is left out. A signed request is signed as of `now_us`, wall clock.

    The number of headers is checked at submission, not here, where some have been added. Raises InvalidRequest.
    """
    method, headers, body = request.method, request.headers, request.body
    if body is not None and method in BODILESS_METHODS:
        raise InvalidRequest(f"the body {_no_body(method)}")
    head, user_agent = _head(method, target)
    trace = "" if request.trace is None else request.trace.traceparent
    if headers:
        reasons = check_form(headers)
        if reasons:
            raise InvalidRequest("headers: " + "; ".join(reasons))
        for name, value in headers:
            if len(name) == 10 and folded(name) == "user-agent":
                user_agent = ""
            elif len(name) == 11 and name.lower() == "traceparent":
                trace = ""
            head += f"{name}: {value}\r\n"
    head += user_agent
    if trace and TRACEPARENT.fullmatch(trace):
        head += f"traceparent: {trace}\r\n"
    if request.signing is not None:
        head += _signature(request.signing, now_us, body or b"")
    if body is not None:
        return f"{head}content-length: {len(body)}\r\n\r\n".encode("ascii") + body
    if method in _LENGTH_REQUIRED:
        head += "content-length: 0\r\n"
    return (head + "\r\n").encode("ascii")


@lru_cache(maxsize=1_024)
def _head(method: str, target: Target) -> tuple[str, str]:
    """The lines common to every request to a target, and the user-agent line, which may be replaced."""
    if method not in METHODS:
        raise InvalidRequest(f"the method {_bad_method(method)}")
    # Responses are not decompressed: they are short, and compression would allow decompression bombs.
    head = f"{method} {target.path} HTTP/1.1\r\nhost: {target.host_header}\r\naccept-encoding: identity\r\n"
    return head, f"user-agent: tocsin/{__version__}\r\n"


def _signature(signing: Signing, now_us: int, body: bytes) -> str:
    """The lines of the signature; empty without a secret."""
    secrets = signing.secrets.at(now_us)
    if not secrets:
        return ""
    message_id = signing.message_id
    if not (message_id.isascii() and message_id.isprintable()):
        raise InvalidRequest("the message id is not a valid header value")
    timestamp_s = now_us // US_PER_SECOND
    try:
        signature = signatures(secrets, message_id, timestamp_s, body)
    except InvalidSecret as error:
        raise InvalidRequest(f"the tenant's secret {error}", "INVALID_SECRET", final=False) from error
    return f"webhook-id: {message_id}\r\nwebhook-timestamp: {timestamp_s}\r\nwebhook-signature: {signature}\r\n"


def _bad_method(method: str) -> str:
    return f"is {method[:40]!r}; use one of {', '.join(METHODS)}"


def _no_body(method: str) -> str:
    return f"can't be sent with {method}; leave it out, or use another method"
