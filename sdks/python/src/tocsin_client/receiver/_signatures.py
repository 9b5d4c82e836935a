"""Signatures as Standard Webhooks specifies them."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence

SIGNATURES_MAX = 10


def key_of(secret: str) -> bytes:
    """The key in a secret. ValueError: it is none."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a signing secret is not valid; it is whsec_ and base64, as `tocsin namespaces` printed it")
    return key


def sign_body(secrets: Iterable[str], webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """The header `webhook-signature`: a signature for each secret, separated by spaces."""
    return " ".join(_signature(key_of(secret), webhook_id, str(timestamp_s), body) for secret in secrets)


def signatures_of(header: str) -> list[bytes] | None:
    """The signatures of this scheme. None: there are more, of whatever scheme, than a rotation of secrets gives a request."""
    given = header.split(" ", SIGNATURES_MAX)
    return None if len(given) > SIGNATURES_MAX else [each.encode() for each in given if each.startswith("v1,")]


def is_signed(keys: Sequence[bytes], webhook_id: str, timestamp: str, body: bytes, given: Sequence[bytes]) -> bool:
    """Whether one of the signatures is of one of the keys. Compares in constant time, and hashes the body once for each
    key."""
    wanted = [_signature(key, webhook_id, timestamp, body).encode() for key in keys]
    matches = [hmac.compare_digest(each, signature) for each in given for signature in wanted]
    return any(matches)


def _signature(key: bytes, webhook_id: str, timestamp: str, body: bytes) -> str:
    mac = hmac.new(key, f"{webhook_id}.{timestamp}.".encode(), "sha256")
    mac.update(body)
    return "v1," + base64.b64encode(mac.digest()).decode()
