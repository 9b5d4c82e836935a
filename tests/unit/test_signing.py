"""Signatures, against the published implementation."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook
from tests.support.cases import each

from tocsin.model.secrets import InvalidSecret, sign

KEYS = st.binary(min_size=24, max_size=64)
IDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=40)


def secret_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


@given(KEYS, IDS, st.integers(0, 4_000_000_000), st.text(st.characters(exclude_categories=("Cs",)), max_size=200))
def test_equals_the_published_implementation(key: bytes, message_id: str, timestamp_s: int, body: str) -> None:
    secret = secret_of(key)
    expected = Webhook(secret).sign(message_id, datetime.fromtimestamp(timestamp_s, UTC), body)
    assert sign(secret, message_id, timestamp_s, body.encode()) == expected


def test_is_accepted_by_the_published_verifier() -> None:
    secret, body = secret_of(bytes(32)), b'{"a":1}'
    now_s = int(datetime.now(UTC).timestamp())
    headers = {
        "webhook-id": "m1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": sign(secret, "m1", now_s, body),
    }
    assert Webhook(secret).verify(body, headers) == {"a": 1}


def test_the_example_of_the_specification() -> None:
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@each(
    "secret, reason",
    [
        ("", "begin with whsec_"),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begin with whsec_"),
        ("whsec_", "0 bytes"),
        ("whsec_!!!!", "base64"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "base64"),
        ("whsec_é", "base64"),
        (secret_of(bytes(23)), "23 bytes"),
        (secret_of(bytes(65)), "65 bytes"),
    ],
)
def test_bad_secrets(secret: str, reason: str) -> None:
    with pytest.raises(InvalidSecret, match=reason):
        sign(secret, "m1", 0, b"")


def test_good_secrets() -> None:
    for size in (24, 64):
        assert sign(secret_of(bytes(size)), "m1", 0, b"").startswith("v1,")
