"""A callback's body that is sent as it is, without the envelope of namespace, id, instants and payload around it."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from tocsin.model.errors import FieldError

#: Content types where none is given.
JSON_TYPE, TEXT_TYPE, BINARY_TYPE = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
#: What carries the envelope beside a raw body.
ENVELOPE_HEADERS = ("tocsin-namespace", "tocsin-timer-id", "tocsin-execute-at", "tocsin-fired-at", "tocsin-attempt")


class RawBody(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """In exactly one of three forms, as the client gave it: `json` is JSON text, sent to the byte as it is; `text` is sent in
    UTF-8, `base64` decoded."""

    content_type: str
    json: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET

    def sent(self) -> bytes:
        """The bytes of the request's body; ValueError where they can't be made."""
        if self.text is not msgspec.UNSET:
            return self.text.encode()
        if self.base64 is not msgspec.UNSET:
            return base64.b64decode(self.base64, validate=True)
        return bytes(self.json) if self.json is not msgspec.UNSET else b""

    @property
    def form_chars(self) -> int:
        """How long it is in the form that is stored and shown."""
        return max(len(form) for form in (self.json, self.text, self.base64) if not isinstance(form, msgspec.UnsetType))


def header_conflicts(names: Iterable[str]) -> list[FieldError]:
    """Which of a timer's own headers can't stand beside a raw body."""
    errors = []
    for name in names:
        if name.lower() == "content-type":
            errors.append(FieldError(f"headers.{name}", "can't stand beside body; give it as body.contentType"))
        elif name.lower() in ENVELOPE_HEADERS:
            errors.append(FieldError(f"headers.{name}", "is set by Tocsin itself beside body; leave it out"))
    return errors
