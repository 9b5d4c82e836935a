"""Redacted secrets in requests: responses show `[redacted]` in place of a secret, and a request that sends it back refers to
the stored value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.redaction import REDACTED, redact_url

if TYPE_CHECKING:
    from tocsin.model.timer import Timer

#: `[redacted]` in a URL, as it is or percent-encoded by a program that parsed the URL.
_IN_URL = re.compile(r"(?:\[|%5[Bb])redacted(?:\]|%5[Dd])")
_MARK = REDACTED.strip("[]")
_REASON = f"has {REDACTED} in place of a secret, and no stored timer has a value for it"


def withheld(url: str | None, headers: Mapping[str, str] | None) -> bool:
    """Whether the URL or a header has `[redacted]` in place of a stored secret."""
    return (url is not None and _in_url(url)) or (headers is not None and any(map(_is_mark, headers.values())))


def with_headers(headers: Mapping[str, str], stored: Mapping[str, str] | None) -> dict[str, str]:
    """The headers, with the stored values in place of `[redacted]`. Raises InvalidInput with those that are not stored."""
    known = {name.lower(): value for name, value in (stored or {}).items()}
    errors = [
        FieldError(f"headers.{name}", f"{_REASON}; send the header's value")
        for name, value in headers.items()
        if _is_mark(value) and name.lower() not in known
    ]
    if errors:
        raise InvalidInput(*errors)
    return {name: known[name.lower()] if _is_mark(value) else value for name, value in headers.items()}


def with_url(url: str, stored: str | None) -> str:
    """The URL, or the stored one if this is its redacted form. Raises InvalidInput for any other URL with `[redacted]`: the
    stored secrets would be sent to another destination."""
    if not _in_url(url):
        return url
    if stored is not None and not _in_url(stored) and _IN_URL.sub(REDACTED, url) == redact_url(stored):
        return stored
    raise InvalidInput(FieldError("callbackUrl", f"{_REASON}; send the whole URL"))


def take_secrets(timer: Timer, stored: Timer | None) -> None:
    """Gives a timer the secrets of a stored one where its URL and headers have `[redacted]`. Raises InvalidInput like
    `with_url` and `with_headers`."""
    timer.url = with_url(timer.url, None if stored is None else stored.url)
    if timer.headers is not None:
        timer.headers = with_headers(timer.headers, None if stored is None else stored.headers)


def _is_mark(value: str) -> bool:
    return value.strip() == REDACTED


def _in_url(url: str) -> bool:
    return _MARK in url and _IN_URL.search(url) is not None
