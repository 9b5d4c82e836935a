"""Stored data contains no secrets, stays within its limits, and is text that databases accept."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.redaction import REDACTED, is_secret_name, redact_url, secrets_of
from tocsin.service_calls.execution.redaction import cut_text, redact_header, snippet

SECRET_NAMES = [
    *("authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-API-Key", "x-api_key", "apikey", "api.key"),
    *("X-Auth-Token", "x-csrf-token", "X-Amz-Security-Token", "client-secret", "X-Password", "passwd", "X-Session-Id"),
    *("x-hub-signature-256", "X-Access-Key", "private-key", "x-goog-credential", "jwt", "Ocp-Apim-Subscription-Key"),
    *(
        "x-functions-key",
        "aeg-sas-key",
        "DD-APPLICATION-KEY",
        "Fastly-Key",
        "X-Insert-Key",
        "X-Honeycomb-Team",
        "x-key",
    ),
    *("app-key", "webhook_key", "client.key", "cache-api-key"),
]
PLAIN_NAMES = [
    *("content-type", "accept", "x-correlation-id", "x-request-id", "idempotency-key", "cache-control", "etag"),
    *("www-authenticate", "location", "date", "server", "content-security-policy", "x-monkey", "x-protocol", "options"),
    *("X-Cache-Key", "surrogate-key", "x-partition-key", "partition_key", "Sec-WebSocket-Key", "public-key", "keys"),
]


@each("name", SECRET_NAMES)
def test_secret_headers_are_redacted(name: str) -> None:
    assert is_secret_name(name)
    assert redact_header(name, "s3cret-value", 100) == REDACTED


@each("name", PLAIN_NAMES)
def test_plain_headers_are_kept(name: str) -> None:
    assert not is_secret_name(name)
    assert redact_header(name, "value", 100) == "value"


@each("value", ["Bearer abc", "basic dXNlcjpwYXNz", "Digest username=x"])
def test_credentials_are_recognized_by_their_form(value: str) -> None:
    assert redact_header("x-upstream", value, 100) == REDACTED


@each(
    "url, kept",
    [
        ("https://a.example/x?b=c&d=e", "https://a.example/x?b=c&d=e"),
        ("https://u:p@a.example/x", "https://[redacted]@a.example/x"),
        ("https://u:p@ss@a.example/x", "https://[redacted]@a.example/x"),
        ("https://a.example/?token=t&b=c", "https://a.example/?token=[redacted]&b=c"),
        ("https://a.example/?b=c&API%5fKEY=t#x", "https://a.example/?b=c&API%5fKEY=[redacted]"),
        ("https://a.example/?b=c;sig=t==", "https://a.example/?b=c;sig=[redacted]"),
        ('https://a.example/?token=abc">def', "https://a.example/?token=[redacted]"),
        ("https://a.example/?token=ab;cd&b=c", "https://a.example/?token=[redacted]&b=c"),
        ("https://a.example/?b=c;d;token=ab;cd=e", "https://a.example/?b=c;d;token=[redacted]"),
        ("https://a.example/?to=https://b.example/?sig=a;b", "https://a.example/?to=https://b.example/?sig=[redacted]"),
        ("https://a.example/?auth[token]=t", "https://a.example/?auth[token]=[redacted]"),
        ("https://a.example/x#access_token=t", "https://a.example/x"),
        ("https://a.example/?mail=a@b.example", "https://a.example/?mail=a@b.example"),
    ],
)
def test_secret_parameters_of_urls_are_redacted(url: str, kept: str) -> None:
    assert redact_url(url) == kept


def test_secret_parameters_of_urls_in_headers_are_redacted() -> None:
    assert redact_header("Location", "/next?token=t&page=2", 100) == "/next?token=[redacted]&page=2"
    assert redact_header("link", '<https://a/?key=t>; rel="next"', 100) == '<https://a/?key=[redacted]>; rel="next"'


@given(st.sampled_from(SECRET_NAMES), st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8))
def test_an_echoed_secret_is_redacted(name: str, secret: str) -> None:
    headers = [("x-plain", "1"), (name, f"Bearer {secret}")]
    secrets = secrets_of(f"http://a/?token={secret}x", headers)
    echoed = f'{{"all": "Bearer {secret}", "part": "{secret}", "query": "{secret}x"}}'.encode()
    assert secret not in snippet(echoed, 4_096, secrets).text


@each(
    "sent, echoed",
    [("s3cr%2Ft%2BAbCd", "s3cr/t+AbCd"), ("s3cr+t%3DAbCd", "s3cr t=AbCd"), ("s3cr+t%3DAbCd", "s3cr+t=AbCd")],
)
def test_a_secret_that_the_url_encodes_is_redacted_where_it_is_echoed_decoded(sent: str, echoed: str) -> None:
    secrets = secrets_of(f"http://a/?token={sent}", [])
    for text in (sent, echoed):
        assert snippet(f"no client {text}".encode(), 4_096, secrets).text == "no client [redacted]"


def test_a_secret_is_redacted_where_it_is_echoed_as_json() -> None:
    secret = 'p"ss/w0rd-löng\\x'
    for headers in ([("x-api-key", secret)], [("authorization", f"Basic {secret}")]):
        secrets = secrets_of("http://a", headers)
        for echoed in (
            json.dumps({"got": secret}),
            json.dumps({"got": secret}, ensure_ascii=False),
            json.dumps({"got": secret}).replace("/", "\\/"),
        ):
            assert snippet(echoed.encode(), 4_096, secrets).text == '{"got": "[redacted]"}'


def test_a_secret_with_a_semicolon_is_redacted_whole_and_up_to_that() -> None:
    secrets = secrets_of("http://a/?token=01234567;89abcdef", [])
    for echoed in (b"no client 01234567;89abcdef", b"no client 01234567"):
        assert snippet(echoed, 4_096, secrets).text == "no client [redacted]"


def test_a_secret_across_the_cut_is_redacted() -> None:
    secrets = secrets_of("http://a", [("authorization", "Bearer 0123456789")])
    assert snippet(b"x" * 5 + b"0123456789", 9, secrets) == ("xxxxx[red", True)


def test_innocent_requests_have_no_secrets() -> None:
    assert secrets_of("http://a/?b=c", [("x-a", "b"), ("cookie", "a=b")]) == ()


@given(st.binary(max_size=200), st.integers(0, 60))
def test_snippets_of_any_bytes_are_valid(data: bytes, bytes_max: int) -> None:
    text, cut = snippet(data, bytes_max)
    encoded = text.encode()
    assert len(encoded) <= bytes_max
    assert not any(ord(character) < 32 and character not in "\t\n\r" for character in text)
    assert "\x7f" not in text
    if not cut:
        visible = data.decode("utf-8", "replace")
        assert len(text) == len(visible)


@given(st.text(max_size=80), st.integers(0, 100))
def test_no_character_is_cut_in_two(text: str, bytes_max: int) -> None:
    whole = cut_text(text, 1_000).text
    data = text.encode("utf-8", "replace")
    taken, cut = snippet(data, bytes_max)
    assert whole.startswith(taken) or "?" in whole or "\ufffd" in whole
    assert cut or len(whole.encode()) <= bytes_max
    assert "\ufffd" not in taken or "\ufffd" in data.decode() or any("\x80" <= c < "\xa0" for c in text)


def test_control_characters_become_visible() -> None:
    assert snippet(b"a\x00b\x1b[31m\r\n\tc\x7f\xc2\x85", 100) == ("a␀b␛[31m\r\n\tc␡\ufffd", False)
    assert cut_text("\ud800", 10) == ("\ufffd", False)


def test_snippets_stay_within_their_limit() -> None:
    assert snippet("ää".encode(), 4) == ("ää", False)
    assert snippet("ää".encode(), 3) == ("ä", True)
    assert snippet(b"a" * 10, 10) == ("a" * 10, False)
    assert snippet(b"\x00" * 10, 10) == ("␀␀␀", True)
    assert snippet(b"", 0) == ("", False)
