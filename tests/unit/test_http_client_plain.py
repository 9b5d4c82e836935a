"""Composing and checking a service call's request."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin import __version__
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.plain import IDEMPOTENT, METHODS, check_request, compose_plain
from tocsin.http_client.request import InvalidRequest
from tocsin.http_client.target import parse_url
from tocsin.model.secrets import SigningSecrets, signatures
from tocsin.model.validation import folded
from tocsin.ports.http import CallTrace, Request, Signing

NOW = 1_801_396_800_000_000
URL = "http://api.example:8080/a?b=c"


def composed(**changes: Any) -> bytes:
    request = Request("POST", URL, (), b"{}", 1_000_000)._replace(**changes)
    return compose_plain(request, parse_url(request.url), NOW)


def test_the_request_is_sent_as_given() -> None:
    headers = (("Content-Type", "application/json"), ("X-Own", "a  b\tc"))
    assert composed(headers=headers, body=b'{"a" : 1}\x00\xff') == (
        b"POST /a?b=c HTTP/1.1\r\nhost: api.example:8080\r\naccept-encoding: identity\r\n"
        b"Content-Type: application/json\r\nX-Own: a  b\tc\r\n"
        b"user-agent: tocsin/" + __version__.encode() + b'\r\ncontent-length: 11\r\n\r\n{"a" : 1}\x00\xff'
    )


def test_a_signed_request_has_a_signature_by_each_secret() -> None:
    keys = [base64.b64encode(bytes([n]) * 32).decode() for n in range(2)]
    first = SigningSecrets(f"whsec_{keys[0]}")
    secrets = first.rotated(f"whsec_{keys[1]}", NOW, 1)
    sent = composed(headers=(("x-other", "kept"),), body=b"{}", signing=Signing("call-1", secrets)).decode()
    wanted = signatures([f"whsec_{keys[1]}", f"whsec_{keys[0]}"], "call-1", NOW // 1_000_000, b"{}")
    assert "x-other: kept\r\n" in sent
    assert f"webhook-id: call-1\r\nwebhook-timestamp: {NOW // 1_000_000}\r\nwebhook-signature: {wanted}\r\n" in sent
    assert sent.lower().count("webhook-id:") == sent.lower().count("webhook-signature:") == 1
    bodiless = composed(method="GET", body=None, signing=Signing("call-1", first)).decode()
    assert signatures([f"whsec_{keys[0]}"], "call-1", NOW // 1_000_000, b"") in bodiless


def test_an_invalid_secret_is_reported_without_its_value() -> None:
    with pytest.raises(InvalidRequest, match="the tenant's secret") as refused:
        composed(signing=Signing("call-1", SigningSecrets("hunter2")))
    assert refused.value.code == "INVALID_SECRET"
    assert "hunter2" not in str(refused.value)


@each("name", ["User-Agent", "User_Agent"])
def test_a_custom_user_agent_replaces_the_default(name: str) -> None:
    sent = composed(headers=((name, "me"),)).decode()
    assert f"\r\n{name}: me\r\n" in sent
    assert sent.lower().replace("_", "-").count("user-agent") == 1


def test_the_traceparent_is_sent_unless_the_call_has_one() -> None:
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    trace = CallTrace("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "t", "c", "e")
    assert f"\r\ntraceparent: {trace.traceparent}\r\n" in composed(trace=trace).decode()
    sent = composed(trace=trace, headers=(("Traceparent", own),)).decode()
    assert sent.lower().count("traceparent") == 1
    assert f"\r\nTraceparent: {own}\r\n" in sent
    for invalid in ("", "abc", f"{own}\r\nx: y", own.upper()):
        assert composed(trace=CallTrace(invalid, "t", "c", "e")) == composed()


@each("method", METHODS)
def test_content_length_is_sent_where_the_method_anticipates_a_body(method: str) -> None:
    bare = composed(method=method, body=None)
    assert bare.startswith(method.encode() + b" ")
    assert (b"content-length: 0\r\n" in bare) == (method in {"POST", "PUT", "PATCH"})
    if method in {"GET", "HEAD"}:
        with pytest.raises(InvalidRequest, match="can't be sent with"):
            composed(method=method, body=b"")
    else:
        assert composed(method=method, body=b"ab").endswith(b"content-length: 2\r\n\r\nab")
        assert composed(method=method, body=b"").endswith(b"content-length: 0\r\n\r\n")


def test_idempotent_methods() -> None:
    assert set(METHODS) - IDEMPOTENT == {"POST", "PATCH"}


@each("method", ["TRACE", "CONNECT", "get", "", "GET /x HTTP/1.1\r\n"])
def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(InvalidRequest):
        composed(method=method, body=None)
    assert [path for path, _ in check_request(method, URL, {}, None)] == ["method"]


def test_a_valid_request_has_no_errors() -> None:
    for method in METHODS:
        assert check_request(method, URL, {"x-a": "1", "x_b": "1", "Authorization": "Bearer x"}, None) == []
    assert check_request("DELETE", URL, {}, b"x") == []


def test_each_bad_field_is_named() -> None:
    problems = check_request("GET", "ftp://x", {"Host": "a", "x y": "1", "x-ok": "line\r\nend"}, b"x")
    assert [path for path, _ in problems] == ["url", "headers", "headers", "headers", "body"]
    texts = dict(problems)
    assert "http or https" in texts["url"]
    assert texts["body"] == "can't be sent with GET; leave it out, or use another method"


@each("name", ["Content-Length", "transfer_encoding", "HOST", "webhook_signature", "TOCSIN_namespace"])
def test_headers_that_tocsin_sets_are_reserved(name: str) -> None:
    assert check_request("POST", URL, {name: "1"}, None) == [("headers", f"{name} is set by the server; leave it out")]
    with pytest.raises(InvalidRequest, match="is set by the server"):
        composed(headers=((name, "1"),))


def test_too_many_headers_are_refused_at_submission_only() -> None:
    limits = CallbackLimits(request_headers_max=2, request_header_bytes_max=10)
    headers = {"a": "1234", "b": "1234", "c": "1"}
    reasons = [reason for _, reason in check_request("POST", URL, headers, None, limits)]
    assert len(reasons) == 2
    assert composed(headers=tuple(headers.items()))


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=4))
def test_accepted_headers_add_exactly_their_own_lines(headers: dict[str, str]) -> None:
    pairs = tuple(headers.items())
    if check_request("PUT", URL, headers, None):
        with pytest.raises(InvalidRequest):
            composed(method="PUT", headers=pairs)
        return
    lines = composed(method="PUT", headers=pairs, body=None).decode("ascii").split("\r\n")
    own = [f"{name}: {value}" for name, value in pairs]
    assert lines[3 : 3 + len(own)] == own
    brings_agent = any(folded(name) == "user-agent" for name in headers)
    # Request line, host, accept-encoding, content-length, two ends; and user-agent.
    assert len(lines) == 6 + len(own) + (0 if brings_agent else 1)
