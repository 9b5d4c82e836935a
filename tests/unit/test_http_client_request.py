"""Composing a callback's request, and refusing invalid headers."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook
from tests.support.cases import each

from tocsin import __version__
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import InvalidRequest, check_headers, compose
from tocsin.http_client.target import parse_url
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.timer import RawBody
from tocsin.model.validation import METHODS
from tocsin.ports.http import Invocation
from tocsin.targets.nats import compose_message

NOW = 1_801_396_800 * US_PER_SECOND
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LIMITS = CallbackLimits()


def an_invocation(**changes: Any) -> Invocation:
    usual = Invocation(
        namespace="orders",
        timer_id="order 4711",
        execute_at=NOW,
        fired_at=NOW + 1_500,
        attempt=2,
        payload=msgspec.Raw(b'{"a" : 1.0}'),
        message_id="0198f1c2",
        url="http://hooks.example:8080/a?b=c",
        method="POST",
        headers=None,
        timeout_us=1_000_000,
        secrets=(),
        traceparent=None,
    )
    return msgspec.structs.replace(usual, **changes)


def composed(**changes: Any) -> tuple[str, dict[str, str], bytes]:
    invocation = an_invocation(**changes)
    head, _, body = compose(invocation, parse_url(invocation.url), NOW + 2_000, LIMITS).partition(b"\r\n\r\n")
    line, *rest = head.decode("ascii").split("\r\n")
    pairs = [(name, value) for name, _, value in (text.partition(": ") for text in rest)]
    assert len({name.lower() for name, _ in pairs}) == len(pairs)
    return line, dict(pairs), body


def test_the_ordinary_request() -> None:
    line, headers, body = composed()
    assert line == "POST /a?b=c HTTP/1.1"
    assert headers == {
        "host": "hooks.example:8080",
        "user-agent": f"tocsin/{__version__}",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "webhook-id": "0198f1c2",
        "webhook-timestamp": str(NOW // US_PER_SECOND),
        "content-length": str(len(body)),
    }
    assert json.loads(body) == {
        "namespace": "orders",
        "timerId": "order 4711",
        "executeAt": "2027-01-31T12:00:00Z",
        "firedAt": "2027-01-31T12:00:00.001500Z",
        "attempt": 2,
        "payload": {"a": 1},
    }
    assert b'"payload":{"a" : 1.0}}' in body


def test_signed_and_traced() -> None:
    _, headers, body = composed(secrets=(SECRET,), traceparent=TRACE)
    assert headers["traceparent"] == TRACE
    moment = datetime.fromtimestamp(NOW // US_PER_SECOND, UTC)
    assert headers["webhook-signature"] == Webhook(SECRET).sign("0198f1c2", moment, body.decode())


@each("method", METHODS)
def test_methods(method: str) -> None:
    line, headers, body = composed(method=method)
    assert line.startswith(method + " ")
    bodiless = method in ("GET", "HEAD")
    assert (body == b"") == bodiless
    assert ("content-length" in headers) != bodiless
    assert ("content-type" in headers) != bodiless


def test_custom_headers_replace_defaults() -> None:
    theirs = {"Authorization": "Bearer x", "User-Agent": "mine", "Content-Type": "application/x", "Traceparent": "t"}
    _, headers, _ = composed(headers=theirs, traceparent=TRACE)
    assert theirs.items() <= headers.items()
    assert not {"user-agent", "content-type", "traceparent"} & headers.keys()
    # Receivers that can't distinguish an underscore from a hyphen would have both.
    theirs = {"User_Agent": "mine", "Content_Type": "application/x"}
    _, headers, _ = composed(headers=theirs)
    assert theirs.items() <= headers.items()
    assert not {"user-agent", "content-type"} & headers.keys()


def test_custom_headers_replace_defaults_of_messages() -> None:
    theirs = {"Content_Type": "application/x"}
    headers, _ = compose_message(an_invocation(headers=theirs), NOW, LIMITS)
    assert theirs.items() <= headers.items()
    assert "content-type" not in headers


@each("trace", ["", "x", TRACE + "\r\nx: y", TRACE.upper()])
def test_an_invalid_traceparent_is_omitted(trace: str) -> None:
    assert "traceparent" not in composed(traceparent=trace)[1]


@each(
    "url, line, host",
    [
        ("http://h.example", "POST / HTTP/1.1", "h.example"),
        ("http://h.example:80", "POST / HTTP/1.1", "h.example"),
        ("https://h.example:443/", "POST / HTTP/1.1", "h.example"),
        ("https://h.example:80/", "POST / HTTP/1.1", "h.example:80"),
        ("http://H.Example?q", "POST /?q HTTP/1.1", "h.example"),
        ("http://[2606:4700:0::1111]:81/x", "POST /x HTTP/1.1", "[2606:4700::1111]:81"),
        ("http://bücher.example/ü?ü=%20#f", "POST /%C3%BC?%C3%BC=%20 HTTP/1.1", "xn--bcher-kva.example"),
    ],
)
def test_targets(url: str, line: str, host: str) -> None:
    found_line, headers, _ = composed(url=url)
    assert (found_line, headers["host"]) == (line, host)


@each(
    "changes",
    [
        {"method": "TRACE"},
        {"method": "POST / HTTP/1.1\r\nx: y\r\n\r\n"},
        {"message_id": "a\r\nx: y"},
        {"message_id": "é"},
        {"headers": {"host": "x"}},
        {"headers": {"x": "a\r\nb: c"}},
        {"timer_id": "\ud800"},
        {"execute_at": 2**62},
    ],
)
def test_an_invalid_request_is_final(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        composed(**changes)
    assert (raised.value.code, raised.value.final) == ("INVALID_REQUEST", True)


def test_an_invalid_secret_is_retried() -> None:
    with pytest.raises(InvalidRequest) as raised:
        composed(secrets=("whsec_x",))
    assert (raised.value.code, raised.value.final) == ("INVALID_SECRET", False)
    assert "whsec_x" not in str(raised.value)


@each(
    "name, value",
    [
        *((name, "x") for name in ("Host", "content-length", "Transfer-Encoding", "connection", "expect", "TE")),
        *((name, "x") for name in ("webhook-id", "Webhook-Signature", "webhook-anything", "accept-encoding")),
        *((name, "x") for name in ("", "a b", "a:", "a\r\n", "é", "a\n", "\x00", "(a)", "x\u0130")),
        *(("x", value) for value in ("a\r\nb", "a\n", "\r", "\x00", " a", "a ", "é", "\x7f", "a\u2028b", "\t")),
    ],
)
def test_headers_refused(name: str, value: str) -> None:
    assert len(check_headers({name: value})) == 1


def test_headers_accepted() -> None:
    assert check_headers({}) == []
    assert check_headers({"Authorization": "Bearer a.b-c", "x-empty": "", "x": "a\tb  c", "Accept": "*/*"}) == []


def test_headers_are_limited() -> None:
    assert "given twice" in check_headers({"X": "1", "x": "2"})[0]
    assert "headers; at most" in check_headers({f"x{n}": "" for n in range(33)})[0]
    assert "bytes in total; at most" in check_headers({"x": "a" * 8_192})[0]


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=4))
def test_no_header_value_can_add_a_line(headers: dict[str, str]) -> None:
    if check_headers(headers):
        with pytest.raises(InvalidRequest):
            composed(headers=headers)
    else:
        _, found, _ = composed(headers=headers)
        assert headers.items() <= found.items()


@each(
    "body, sent",
    [
        (RawBody("application/json", json=msgspec.Raw(b'{ "a" :1.0 }')), b'{ "a" :1.0 }'),
        (RawBody("text/plain; charset=utf-8", text="h\u0000ä"), b"h\x00\xc3\xa4"),
        (RawBody("image/x", base64="AP8K"), b"\x00\xff\n"),
        (RawBody("text/plain", text=""), b""),
    ],
)
def test_a_raw_body_is_sent_and_signed_unchanged_with_the_envelope_in_headers(body: RawBody, sent: bytes) -> None:
    line, headers, got = composed(
        body=body, timer_id="größe/ 1\U0001f514", secrets=(SECRET,), headers={"X-Own": "1"}, method="PUT"
    )
    assert (line, got, headers["content-type"]) == ("PUT /a?b=c HTTP/1.1", sent, body.content_type)
    assert {name: value for name, value in headers.items() if name.startswith("tocsin-")} == {
        "tocsin-namespace": "orders",
        "tocsin-timer-id": "gr%C3%B6%C3%9Fe%2F%201%F0%9F%94%94",
        "tocsin-execute-at": "2027-01-31T12:00:00Z",
        "tocsin-fired-at": "2027-01-31T12:00:00.001500Z",
        "tocsin-attempt": "2",
    }
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + sent
    digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256")
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert (headers["X-Own"], headers["content-length"]) == ("1", str(len(sent)))


def test_get_carries_the_envelope_of_a_raw_body_but_not_the_body() -> None:
    _, headers, got = composed(body=RawBody("text/plain", text="x"), method="GET")
    assert (got, headers["tocsin-attempt"], "content-type" in headers) == (b"", "2", False)
