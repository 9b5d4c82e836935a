"""What is kept of requests and answers: no secrets, bounded, and text that every database takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_plus

REDACTED = "[redacted]"

#: Parts of names whose values are secrets, of headers and of query parameters.
_SECRET = re.compile(
    r"auth|cookie|token|secret|passw|passphrase|passcode|credential|session|signature|jwt|bearer|csrf|xsrf|otp"
    r"|(?:api|access|private|account|subscription|shared|master|signing|encryption|license)[-_.]?key"
)
#: Whole names, too short or too common to look for inside others.
_SECRET_NAMES = frozenset({"key", "sig", "pwd", "pass", "pin", "sid", "code", "x-key"})
#: They match, and tell what went wrong rather than how to get in.
_PLAIN_NAMES = frozenset({"www-authenticate", "proxy-authenticate", "authority", ":authority", "author", "x-author"})
#: A value that is a credential, whatever its header is called.
_CREDENTIAL = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey)\s+\S", re.IGNORECASE)
#: Headers whose values are URLs or contain them.
_URL_HEADERS = frozenset({"location", "content-location", "referer", "link", "refresh"})
#: Secrets shorter than this are not looked for in answers: they would be found in innocent words.
_ECHO_CHARS_MIN = 8
_VALUE_PARTS = re.compile(r"[\s;,=\"]+")

_USERINFO = re.compile(r"//[^/?#\s]*@")
_PARAMETER = re.compile(r"([?&;])([^=&;#\s]+)=([^&;#\s>\"]*)")

#: Control characters become visible ones: their pictures, or the replacement character. Tabs and line ends stay.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_VISIBLE |= (
    {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd") | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)
_INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Snippet(NamedTuple):
    """The beginning of a text; `cut` says that there was more."""

    text: str
    cut: bool


@lru_cache(maxsize=4_096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a header or parameter of this name is taken for a secret."""
    folded = name.strip().lower()
    if folded in _PLAIN_NAMES:
        return False
    return folded in _SECRET_NAMES or _SECRET.search(folded) is not None


def is_secret(name: str, value: str) -> bool:
    """Whether a header's value is a secret, by its name or by its form."""
    return is_secret_name(name) or _CREDENTIAL.match(value) is not None


def redact_header(name: str, value: str, bytes_max: int) -> str:
    """The value as it is kept."""
    if is_secret(name, value):
        return REDACTED
    if name.lower() in _URL_HEADERS:
        value = _redact_parameters(value)
    return cut_text(value, bytes_max).text


def redact_url(url: str) -> str:
    """The URL without credentials before the host, without secrets in its query, and without its fragment, which is never
    sent."""
    return _redact_parameters(url.partition("#")[0])


def _redact_parameters(text: str) -> str:
    if "@" in text:
        text = _USERINFO.sub(f"//{REDACTED}@", text)
    return _PARAMETER.sub(_redact_parameter, text) if "=" in text else text


def _redact_parameter(match: re.Match[str]) -> str:
    separator, name, value = match.groups()
    return f"{separator}{name}={REDACTED if is_secret_name(unquote_plus(name)) else value}"


def secrets_of(url: str, headers: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
    """The secrets of a request that its answer may repeat: values of parameters and headers, whole and in their parts (a
    token without its scheme, each cookie)."""
    found = []
    if "?" in url:
        found = [value for _, name, value in _PARAMETER.findall(url) if is_secret_name(unquote_plus(name))]
    for name, value in headers:
        if is_secret(name, value):
            found += [value, *_VALUE_PARTS.split(value)]
    if not found:
        return ()
    # The longest first: the shorter ones are parts of them.
    wanted = {text.encode("utf-8", "replace") for text in found if len(text) >= _ECHO_CHARS_MIN}
    return tuple(sorted(wanted, key=lambda secret: (-len(secret), secret)))


def snippet(data: bytes, bytes_max: int, secrets: Collection[bytes] = ()) -> Snippet:
    """The beginning of a body as text of at most `bytes_max` bytes of UTF-8, without the secrets given."""
    if secrets:
        for secret in secrets:
            data = data.replace(secret, REDACTED.encode())
    # A character that this cut takes apart lies beyond the limit, and goes with the second cut.
    text = data[: bytes_max + 4].decode("utf-8", "replace")
    taken, cut = cut_text(text, bytes_max)
    return Snippet(taken, cut or len(data) > bytes_max)


def cut_text(text: str, bytes_max: int) -> Snippet:
    """At most `bytes_max` bytes of UTF-8 of the text, no character cut in two, control characters made visible."""
    if _INVISIBLE.search(text) is not None:
        text = text.translate(_VISIBLE)
    if len(text) * 4 <= bytes_max:
        return Snippet(text, False)
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return Snippet(text, False)
    return Snippet(encoded[:bytes_max].decode("utf-8", "ignore"), True)
