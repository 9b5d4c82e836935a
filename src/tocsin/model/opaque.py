"""Opaque texts: bytes that clients get and send back unchanged, such as cursors."""

from __future__ import annotations

import base64


def to_opaque(data: bytes) -> str:
    """The bytes as text that needs no quoting in a URL: base64url without padding (RFC 4648 section 5)."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_opaque(text: str) -> bytes:
    """The bytes of a text that `to_opaque` made. Raises ValueError for characters that it does not use."""
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
