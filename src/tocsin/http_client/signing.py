"""Signatures as in the Standard Webhooks specification, symmetric scheme (`v1`)."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable
from functools import lru_cache

SECRET_PREFIX = "whsec_"
#: The specification asks for keys of 24 to 64 bytes.
KEY_BYTES_MIN = 24
KEY_BYTES_MAX = 64


class InvalidSecret(ValueError):
    """The secret is not `whsec_` followed by the base64 of 24 to 64 bytes. The message never contains the secret."""


@lru_cache(maxsize=1_024)
def _key(secret: str) -> bytes:
    if not secret.startswith(SECRET_PREFIX):
        raise InvalidSecret(f"must begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSecret(f"is not valid base64 after {SECRET_PREFIX}") from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise InvalidSecret(f"has {len(key)} bytes; {KEY_BYTES_MIN} to {KEY_BYTES_MAX} are required")
    return key


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The signature of a message; `timestamp_s` is its `webhook-timestamp`, in seconds since 1970.

    Raises InvalidSecret.
    """
    content = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return "v1," + binascii.b2a_base64(hmac.digest(_key(secret), content, "sha256"), newline=False).decode()


def signatures(secrets: Iterable[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The `webhook-signature` of a message: one signature for each secret, in their order, separated by spaces. A receiver
    that knows any of the secrets accepts the message. Raises InvalidSecret."""
    return " ".join([sign(secret, message_id, timestamp_s, body) for secret in secrets])
