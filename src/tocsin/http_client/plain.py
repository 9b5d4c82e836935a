"""Composes a service call's request as bytes: the caller's content and its framing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tocsin import __version__
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import InvalidRequest, check, check_form
from tocsin.http_client.signing import InvalidSecret, signatures
from tocsin.http_client.target import InvalidUrl, Target, parse_url
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.raw_body import BODILESS_METHODS
from tocsin.ports.http import Request, Signing

#: Methods of service calls; without CONNECT and TRACE, which are for proxies.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
#: Idempotent methods: their requests may be sent twice (RFC 9110 section 9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
#: Methods that anticipate a body: without one, content-length: 0 must be sent (RFC 9110 section 8.6).
_LENGTH_REQUIRED = frozenset({"POST", "PUT", "PATCH"})
_SIGNATURE_HEADERS = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})


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
    """Head and body of the request. Its own headers keep their order; a user-agent among them replaces the default. A signed
    request is signed as of `now_us`, wall clock, and its own headers with the signature's names are dropped.

    The number of headers is checked at submission, not here, where some have been added. Raises InvalidRequest.
    """
    method, headers, body = request.method, request.headers, request.body
    if body is not None and method in BODILESS_METHODS:
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
        *((name, value) for name, value in headers if name.lower() not in _SIGNATURE_HEADERS),
        ("webhook-id", signing.message_id),
        ("webhook-timestamp", str(timestamp_s)),
        ("webhook-signature", signature),
    )


def _bad_method(method: str) -> str:
    return f"is {method[:40]!r}; use one of {', '.join(METHODS)}"


def _no_body(method: str) -> str:
    return f"can't be sent with {method}; leave it out, or use another method"
