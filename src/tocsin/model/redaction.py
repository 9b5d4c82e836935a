"""Secrets stay out of what is kept and shown: a name tells whether the value of a header or query parameter is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_plus

#: What stands in a secret's place.
REDACTED = "[redacted]"

#: Parts of the names of secrets.
_SECRET = re.compile(
    r"auth|cookie|token|secret|passw|passphrase|passcode|credential|session|signature|jwt|bearer|csrf|xsrf|otp"
    r"|(?:api|access|private|account|subscription|shared|master|signing|encryption|license)[-_.]?key"
)
#: Whole names, too short or too common to be looked for within others.
_SECRET_NAMES = frozenset({"key", "sig", "pwd", "pass", "pin", "sid", "code", "x-key"})
#: They match, and tell what went wrong rather than how to get in.
_PLAIN_NAMES = frozenset({"www-authenticate", "proxy-authenticate", "authority", ":authority", "author", "x-author"})
#: A value that is a credential, whatever its header is called.
_CREDENTIAL = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey)\s+\S", re.IGNORECASE)

_USERINFO = re.compile(r"//[^/?#\s]*@")
#: No class overlaps what may stand before or behind it, so that a search passes each character once.
_PARAMETER = re.compile(r"([?&;])([^?=&;#\s]+)=([^&;#\s>\"]*)")
#: Longer names are judged each time: remembered, they would take as much memory as a stranger likes.
_REMEMBERED_CHARS_MAX = 128


def is_secret_name(name: str) -> bool:
    """Whether the value of a header or parameter of this name, in any case, is taken for a secret."""
    return _remembered_verdict(name) if len(name) <= _REMEMBERED_CHARS_MAX else _verdict(name)


def _verdict(name: str) -> bool:
    folded = name.strip().lower()
    if folded in _PLAIN_NAMES:
        return False
    return folded in _SECRET_NAMES or _SECRET.search(folded) is not None


_remembered_verdict = lru_cache(maxsize=4_096)(_verdict)


def is_secret(name: str, value: str) -> bool:
    """Whether a header's value is a secret, by its name or by its form."""
    return is_secret_name(name) or _CREDENTIAL.match(value) is not None


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the values of those replaced that are secrets."""
    return {name: REDACTED if is_secret(name, value) else value for name, value in headers.items()}


def redact_url(url: str) -> str:
    """The URL without credentials before the host, without secrets in its query, and without its fragment, which is never
    sent."""
    if "=" not in url and "@" not in url and "#" not in url:
        return url
    return redact_parameters(url.partition("#")[0])


def redact_parameters(text: str) -> str:
    """A text with URLs in it, without their credentials and secrets."""
    if "@" in text:
        text = _USERINFO.sub(f"//{REDACTED}@", text)
    return _PARAMETER.sub(_redact_parameter, text) if "=" in text else text


def secret_parameters(url: str) -> list[str]:
    """The values that `redact_url` takes out of a query."""
    if "?" not in url:
        return []
    return [value for _, name, value in _PARAMETER.findall(url) if is_secret_name(unquote_plus(name))]


def _redact_parameter(match: re.Match[str]) -> str:
    separator, name, value = match.groups()
    return f"{separator}{name}={REDACTED if is_secret_name(unquote_plus(name)) else value}"
