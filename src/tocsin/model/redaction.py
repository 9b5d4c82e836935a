"""Secrets stay out of what is shown: a name tells whether the value of a header or query parameter is one."""

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
#: Names that only look like it.
_PLAIN_NAMES = frozenset({"www-authenticate", "proxy-authenticate", "authority", "author", "x-author"})
#: A value that is a credential, whatever its header is called.
_CREDENTIAL = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey)\s+\S", re.IGNORECASE)
_USER_INFO = re.compile(r"//[^/?#\s]*@")
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#\s]+)=([^&;#\s]*)")


@lru_cache(maxsize=4_096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a header or query parameter of this name, in any case, is taken for a secret."""
    folded = name.strip().lower()
    return folded not in _PLAIN_NAMES and (folded in _SECRET_NAMES or _SECRET.search(folded) is not None)


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the values of those replaced that are secrets by their name or their form."""
    return {
        name: REDACTED if is_secret_name(name) or _CREDENTIAL.match(value) else value for name, value in headers.items()
    }


def redact_url(url: str) -> str:
    """The URL without credentials before the host and without the values of secret query parameters."""
    if "@" in url:
        url = _USER_INFO.sub(f"//{REDACTED}@", url)
    return _PARAMETER.sub(_redact_parameter, url) if "?" in url else url


def _redact_parameter(match: re.Match[str]) -> str:
    name, value = match.groups()
    return f"{name}={REDACTED if value and is_secret_name(unquote_plus(name)) else value}"
