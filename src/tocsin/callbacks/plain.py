"""A service call's request, as bytes: what the caller gave, and the framing around it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tocsin import __version__
from tocsin.callbacks.limits import CallbackLimits
from tocsin.callbacks.request import InvalidRequest, check, check_form
from tocsin.callbacks.signing import InvalidSecret, signatures
from tocsin.callbacks.target import InvalidUrl, Target, parse_url
from tocsin.model.instants import US_PER_SECOND
from tocsin.ports.http import Request, Signing

#: Methods that a service call can have. CONNECT and TRACE are for proxies and their like.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
#: Those that may be sent twice (RFC 9110 section 9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
#: Proxies and servers drop or refuse a body on these.
_BODILESS = frozenset({"GET", "HEAD"})
#: These mean something with a body of no length, which has to be said (RFC 9110 section 8.6).
_LENGTH_SAID = frozenset({"POST", "PUT", "PATCH"})
_OF_SIGNATURES = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})


def check_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: CallbackLimits | None = None
) -> list[tuple[str, str]]:
    """What is wrong with a service call's request: the field (`method`, `url`, `headers`, `body`) and the reason, in words
    that follow the field's name. Empty when it can be sent; whether policy permits the target is EgressPolicy's to say.
    """
    problems = []
    if method not in METHODS:
        problems.append(("method", _no_method(method)))
    try:
        parse_url(url)
    except InvalidUrl as error:
        problems.append(("url", str(error)))
    problems += [("headers", reason) for reason in check(headers.items(), limits or CallbackLimits())]
    if body is not None and method in _BODILESS:
        problems.append(("body", _no_body(method)))
    return problems


def compose_plain(request: Request, target: Target, now_us: int) -> bytes:
    """Head and body of the request; its own headers, in their order, replace our user-agent. If it is to be signed, it is
    as of `now_us`, wall clock, and has none of its own headers of these names.

    How many headers a call may bring is checked when it is submitted, not here, where some were added. Raises
    InvalidRequest.
    """
    method, headers, body = request.method, request.headers, request.body
    if body is not None and method in _BODILESS:
        raise InvalidRequest(f"the body {_no_body(method)}")
    head, user_agent = _head(method, target)
    if request.signing is not None:
        headers = _signed(headers, request.signing, now_us, body or b"")
    if headers:
        reasons = check_form(headers)
        if reasons:
            raise InvalidRequest("headers: " + "; ".join(reasons))
        for name, value in headers:
            if len(name) == 10 and name.lower() == "user-agent":
                user_agent = ""
            head += f"{name}: {value}\r\n"
    head += user_agent
    if body is not None:
        return f"{head}content-length: {len(body)}\r\n\r\n".encode("ascii") + body
    if method in _LENGTH_SAID:
        head += "content-length: 0\r\n"
    return (head + "\r\n").encode("ascii")


@lru_cache(maxsize=1_024)
def _head(method: str, target: Target) -> tuple[str, str]:
    """The lines that are the same for every request to a target, and the one that may be replaced."""
    if method not in METHODS:
        raise InvalidRequest(f"the method {_no_method(method)}")
    # Compressed answers are neither wanted nor understood: they are short, and a bomb can't be.
    head = f"{method} {target.path} HTTP/1.1\r\nhost: {target.host_header}\r\naccept-encoding: identity\r\n"
    return head, f"user-agent: tocsin/{__version__}\r\n"


def _signed(
    headers: tuple[tuple[str, str], ...], signing: Signing, now_us: int, body: bytes
) -> tuple[tuple[str, str], ...]:
    secrets = signing.secrets.at(now_us)
    if not secrets:
        return headers
    timestamp_s = now_us // US_PER_SECOND
    try:
        signature = signatures(secrets, signing.message_id, timestamp_s, body)
    except InvalidSecret as error:
        raise InvalidRequest(f"the tenant's secret {error}", "INVALID_SECRET", final=False) from error
    return (
        *((name, value) for name, value in headers if name.lower() not in _OF_SIGNATURES),
        ("webhook-id", signing.message_id),
        ("webhook-timestamp", str(timestamp_s)),
        ("webhook-signature", signature),
    )


def _no_method(method: str) -> str:
    return f"is {method[:40]!r}; use one of {', '.join(METHODS)}"


def _no_body(method: str) -> str:
    return f"can't be sent with {method}; leave it out, or use another method"
