"""Redaction of secrets."""

from __future__ import annotations

from tests.support.cases import each

from tocsin.model.redaction import REDACTED, redact_headers, redact_url


def test_a_credential_is_a_secret_whatever_its_name() -> None:
    assert redact_headers({"x-upstream": "Bearer abc", "x-note": "bearer", "Cookie": "a=b"}) == {
        "x-upstream": REDACTED,
        "x-note": "bearer",
        "Cookie": REDACTED,
    }


@each(
    "url, shown",
    [
        ("https://a/x", "https://a/x"),
        ("https://a/x?b=c&d", "https://a/x?b=c&d"),
        ("https://a/?token=t&b=c", f"https://a/?token={REDACTED}&b=c"),
        ("https://a/?b=c&Access%5FToken=t", f"https://a/?b=c&Access%5FToken={REDACTED}"),
        ("https://a/?sig=a=b&key=", f"https://a/?sig={REDACTED}&key={REDACTED}"),
        ("https://u:p@a/x", f"https://{REDACTED}@a/x"),
        ("https://a/u@b", "https://a/u@b"),
        ("https://a/?b=c#token=t", "https://a/?b=c"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert redact_url(url) == shown
