"""Secrets on their way back: answers show `[redacted]` in their place, and whoever sends that back means the value that is
stored."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.redaction import REDACTED, redact_url

#: As it stands in a URL, or percent-encoded by what took the URL apart.
_IN_URL = re.compile(r"(?:\[|%5[Bb])redacted(?:\]|%5[Dd])")
_MARK = REDACTED.strip("[]")
_REASON = f"has {REDACTED}, which stands for what is never shown, and no timer is stored from which to keep it"


def withheld(url: str | None, headers: Mapping[str, str] | None) -> bool:
    """Whether something in them stands for a stored secret."""
    return (url is not None and _in_url(url)) or (headers is not None and any(map(_is_mark, headers.values())))


def with_headers(headers: Mapping[str, str], stored: Mapping[str, str] | None) -> dict[str, str]:
    """The headers, with the stored values where they were withheld. InvalidInput names those that are not stored."""
    known = {name.lower(): value for name, value in (stored or {}).items()}
    errors = [
        FieldError(f"headers.{name}", f"{_REASON}; send its value")
        for name, value in headers.items()
        if _is_mark(value) and name.lower() not in known
    ]
    if errors:
        raise InvalidInput(*errors)
    return {name: known[name.lower()] if _is_mark(value) else value for name, value in headers.items()}


def with_url(url: str, stored: str | None) -> str:
    """The URL, or the stored one where this is how it is shown. InvalidInput for any other with something withheld: its
    secrets would go to where their owner did not send them."""
    if not _in_url(url):
        return url
    if stored is not None and not _in_url(stored) and _IN_URL.sub(REDACTED, url) == redact_url(stored):
        return stored
    raise InvalidInput(FieldError("callbackUrl", f"{_REASON}; send the whole URL"))


def _is_mark(value: str) -> bool:
    return value.strip() == REDACTED


def _in_url(url: str) -> bool:
    return _MARK in url and _IN_URL.search(url) is not None
