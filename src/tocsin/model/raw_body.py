"""Raw bodies: a callback's body that is sent unchanged, with the envelope in headers instead of around it."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from tocsin.model.errors import FieldError

#: The default content types.
JSON_TYPE, TEXT_TYPE, BINARY_TYPE = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
#: Methods whose requests have no body: proxies and servers drop or refuse it.
BODILESS_METHODS = frozenset({"GET", "HEAD"})
#: The headers that have the envelope's members beside a raw body.
ENVELOPE_HEADERS = ("tocsin-namespace", "tocsin-timer-id", "tocsin-execute-at", "tocsin-fired-at", "tocsin-attempt")


class RawBody(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A body in exactly one of three forms, as the client gave it: `json` is JSON text, sent byte for byte; `text` is sent in
    UTF-8; `base64` is sent decoded."""

    content_type: str
    json: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET

    def sent(self) -> bytes:
        """The bytes of the request's body. Raises ValueError if the form can't be encoded or decoded."""
        if self.text is not msgspec.UNSET:
            return self.text.encode()
        if self.base64 is not msgspec.UNSET:
            return base64.b64decode(self.base64, validate=True)
        return bytes(self.json) if self.json is not msgspec.UNSET else b""

    @property
    def form_chars(self) -> int:
        """The length of the form that is stored and shown."""
        return max(len(form) for form in (self.json, self.text, self.base64) if not isinstance(form, msgspec.UnsetType))


def header_conflicts(names: Iterable[str]) -> list[FieldError]:
    """The errors of those of a timer's headers that are not allowed with a raw body."""
    reason = "is not allowed with body; set body.contentType instead"
    return [FieldError(f"headers.{name}", reason) for name in names if name.lower() == "content-type"]
