"""Secrets stay out of what is shown and kept: a header's or query parameter's name tells whether its value is one."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What stands in a secret's place.
REDACTED = "[redacted]"

_SECRET = re.compile(
    r"auth(?!or)|cookie|token|secret|passw|credential|signature|session|(?:api|access|private)[-_]?key", re.IGNORECASE
)
#: Names too short to be looked for within others.
_SECRET_PARAMETERS = frozenset({"key", "sig", "pwd", "jwt"})
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#]+)=([^&;#]*)")
_USER_INFO = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*@")


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of those that carry secrets replaced: Authorization, Cookie, X-Api-Key and the like."""
    return {name: REDACTED if _SECRET.search(name) else value for name, value in headers.items()}


def redact_url(url: str) -> str:
    """The URL without credentials before the host, and with secret query parameters replaced; else as it was."""
    if "@" in url:
        url = _USER_INFO.sub(rf"\1{REDACTED}@", url)
    if "?" not in url:
        return url
    return _PARAMETER.sub(_redact_parameter, url)


def _redact_parameter(match: re.Match[str]) -> str:
    name = match[1]
    if match[2] and (_SECRET.search(name) or name.lower() in _SECRET_PARAMETERS):
        return f"{name}={REDACTED}"
    return match[0]
