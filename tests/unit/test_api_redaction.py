"""Secrets are not shown."""

from __future__ import annotations

import pytest

from tocsin.model.redaction import REDACTED, redact_headers, redact_url


@pytest.mark.parametrize(
    "name",
    ["Authorization", "proxy-authorization", "Cookie", "Set-Cookie", "X-API-Key", "apikey", "X-Auth-Token", "x-secret",
     "Password", "X-Hub-Signature-256", "session-id", "x-access-key", "key"],
)  # fmt: skip
def test_secret_headers(name: str) -> None:
    assert redact_headers({name: "v"}) == {name: REDACTED}


@pytest.mark.parametrize("name", ["content-type", "Accept", "x-author", "www-authenticate", "idempotency-key", "etag"])
def test_other_headers(name: str) -> None:
    assert redact_headers({name: "v"}) == {name: "v"}


def test_a_credential_is_a_secret_whatever_its_name() -> None:
    assert redact_headers({"x-upstream": "Bearer abc", "x-note": "bearer"}) == {
        "x-upstream": REDACTED,
        "x-note": "bearer",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a/x", "https://a/x"),
        ("https://a/x?b=c&d", "https://a/x?b=c&d"),
        ("https://a/?token=t&b=c", f"https://a/?token={REDACTED}&b=c"),
        ("https://a/?b=c&Access%5FToken=t", f"https://a/?b=c&Access%5FToken={REDACTED}"),
        ("https://a/?sig=a=b;key=", f"https://a/?sig={REDACTED};key="),
        ("https://u:p@a/x", f"https://{REDACTED}@a/x"),
        ("https://a/u@b", "https://a/u@b"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert redact_url(url) == shown
