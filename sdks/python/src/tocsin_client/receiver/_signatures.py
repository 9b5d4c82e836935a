"""Signatures as Standard Webhooks specifies them."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence


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
    return " ".join(_signature(key_of(secret), webhook_id, timestamp_s, body) for secret in secrets)


def is_signed(keys: Sequence[bytes], webhook_id: str, timestamp_s: int, body: bytes, header: str) -> bool:
    """Whether one of the header's signatures is of one of the keys. Compares in constant time."""
    given = [each.encode() for each in header.split(" ") if each.startswith("v1,")]
    wanted = [_signature(key, webhook_id, timestamp_s, body).encode() for key in keys]
    matches = [hmac.compare_digest(each, signature) for each in given for signature in wanted]
    return any(matches)


def _signature(key: bytes, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    content = f"{webhook_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, content, "sha256")).decode()
