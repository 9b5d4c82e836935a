"""Redaction: secrets are kept out of what is stored and shown. A header or query parameter is a secret by its name.

Responses show `[redacted]` in place of a secret, and a request that sends it back refers to the stored value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote, unquote_plus

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.sealed_text import SEALED_PREFIX
from tocsin.model.visible import visible

#: What is shown in a secret's place.
REDACTED = "[redacted]"

#: Parts of secrets' names.
_SECRET = re.compile(
    r"auth|cookie|token|secret|passw|passphrase|passcode|credential|session|signature|jwt|bearer|csrf|xsrf|otp"
    r"|(?:api|access|private|account|subscription|shared|master|signing|encryption|license)[-_.]?key"
)
#: Whole names of secrets, too short or too common to match within others.
_SECRET_NAMES = frozenset({"key", "sig", "pwd", "pass", "pin", "sid", "code", "x-honeycomb-team"})
#: Services have keys of many names. Those that name a thing instead are no secrets.
_KEY = re.compile(r"[-_.]key\Z")
_PLAIN_KEY = re.compile(
    r"(?:idempotency|idempotent|deduplication|dedup|cache|surrogate|partition|row|range|hash|sort|primary|foreign|public"
    r"|group|ordering|order|routing|concurrency|lock|message|object|project|issue|error|translation|websocket)[-_.]key\Z"
)
#: Names that match but are no secrets.
_PLAIN_NAMES = frozenset({"www-authenticate", "proxy-authenticate", "authority", ":authority", "author", "x-author"})
#: A value that is a credential in any header.
_CREDENTIAL = re.compile(r"(?:basic|bearer|digest|negotiate|token|apikey)\s+\S", re.IGNORECASE)

_QUERY = re.compile(r"[?#]")
_USERINFO = re.compile(r"//[^/?#\s]*@")
#: A parameter of a URL within a text. No character class overlaps its neighbours: a search passes each character once.
_PARAMETER = re.compile(r"([?&;])([^?=&;#\s]+)=([^&;#\s>\"]*)")
#: The name of a parameter in a URL that stands alone. The value of a secret one goes on to the next `&`, whatever is in it.
_PARAMETER_NAME = re.compile(r"[?&;]([^?=&;#\s]+)=")
#: A member of a JSON object, whole or cut at the end of the text: its name, and the text or number that it has.
_MEMBER = re.compile(r'"([^"\\]{1,64})"(\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?$)|-?\d[\d.eE+-]*)')
#: A name and its value in plain text, as in headers, forms and settings.
_ASSIGNMENT = re.compile(r"(?<![\w.\"-])([\w.-]{1,64})(\s?[:=]\s?)([^\s,;&\"'<>{}\[\]]+)")
#: A credential within a text, behind its scheme.
_CREDENTIALS = re.compile(r"\b(basic|bearer|digest|negotiate|apikey)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
#: In bodies, unlike in URLs, this is the code of an error.
_PLAIN_IN_TEXTS = "code"
#: Shorter secrets are not searched for in responses: they would match ordinary words.
_ECHO_CHARS_MIN = 8
_VALUE_PARTS = re.compile(r"[\s;,=\"]+")
#: Longer names are judged each time: a client could fill the cache's memory with them.
_REMEMBERED_CHARS_MAX = 128


def is_secret_name(name: str) -> bool:
    """Whether the value of a header or parameter of this name is a secret. Names are compared case-insensitively."""
    return _remembered_verdict(name) if len(name) <= _REMEMBERED_CHARS_MAX else _verdict(name)


def _verdict(name: str) -> bool:
    folded = name.strip().lower()
    if folded in _PLAIN_NAMES:
        return False
    if folded in _SECRET_NAMES or _SECRET.search(folded) is not None:
        return True
    return _KEY.search(folded) is not None and _PLAIN_KEY.search(folded) is None


_remembered_verdict = lru_cache(maxsize=4_096)(_verdict)


def is_secret(name: str, value: str) -> bool:
    """Whether a header's value is a secret, by its name or by its form, which a sealed one has, too."""
    return is_secret_name(name) or _CREDENTIAL.match(value) is not None or value.startswith(SEALED_PREFIX)


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with secret values replaced by `[redacted]`."""
    return {name: REDACTED if is_secret(name, value) else value for name, value in headers.items()}


def path_of(url: str) -> str:
    """The path of a URL, without its query: by which destinations of one host differ; it has no secrets by name."""
    return f"/{_QUERY.split(url.partition('://')[2], maxsplit=1)[0].partition('/')[2]}"


def redact_url(url: str) -> str:
    """The URL with the credentials before its host and the secrets in its query replaced by `[redacted]`, and without its
    fragment, which is never sent."""
    if "=" not in url and "@" not in url and "#" not in url:
        return url
    url = url.partition("#")[0]
    if "@" in url:
        url = _USERINFO.sub(f"//{REDACTED}@", url)
    return _replaced(url, lambda _: REDACTED)


def redact_parameters(text: str) -> str:
    """The text, with credentials and secrets of the URLs in it replaced by `[redacted]`."""
    if "@" in text:
        text = _USERINFO.sub(f"//{REDACTED}@", text)
    return _PARAMETER.sub(_redact_parameter, text) if "=" in text else text


def replace_secrets_in(url: str, change: Callable[[str], str]) -> str:
    """The URL, without a fragment, with the secrets in its query changed, unless they are empty. Before its host, no URL that
    may be called has any."""
    return _replaced(url, lambda value: change(value) if value else value)


def _replaced(url: str, change: Callable[[str], str]) -> str:
    parts, done = [], 0
    for begin, end in _secret_values(url):
        parts += [url[done:begin], change(url[begin:end])]
        done = end
    return "".join((*parts, url[done:])) if parts else url


def _secret_values(url: str) -> Iterator[tuple[int, int]]:
    """Where the values of a URL's secret parameters begin and end."""
    at = 0
    while (match := _PARAMETER_NAME.search(url, at)) is not None:
        at = match.end()
        if is_secret_name(unquote_plus(match[1])):
            end = url.find("&", at)
            begin, at = at, len(url) if end < 0 else end
            yield begin, at


def redact_text(text: str) -> str:
    """The text, with what looks like a secret in JSON, forms, headers and URLs replaced by `[redacted]`. The text may be cut
    anywhere at its end."""
    text = _CREDENTIALS.sub(rf"\1\2{REDACTED}", redact_parameters(text))
    text = _MEMBER.sub(_redact_member, text)
    return _ASSIGNMENT.sub(_redact_assignment, text)


def _is_secret_in_text(name: str) -> bool:
    return name.lower() != _PLAIN_IN_TEXTS and is_secret_name(name)


def _redact_member(match: re.Match[str]) -> str:
    name, colon, _ = match.groups()
    return f'"{name}"{colon}"{REDACTED}"' if _is_secret_in_text(name) else match[0]


def _redact_assignment(match: re.Match[str]) -> str:
    name, separator, _ = match.groups()
    return f"{name}{separator}{REDACTED}" if _is_secret_in_text(name) else match[0]


def secrets_of(url: str, headers: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
    """The secrets of a request that a response may repeat: values of parameters, as in the URL and decoded; and those of
    headers, whole and in parts (a token without its scheme, each cookie)."""
    found = secret_parameters(url)
    # Some receivers take a semicolon for the end of a parameter.
    found += [value.partition(";")[0] for value in found if ";" in value]
    found += [decode(value) for value in found if "%" in value or "+" in value for decode in (unquote, unquote_plus)]
    for name, value in headers:
        if is_secret(name, value):
            found += [value, value.partition(" ")[2], *_VALUE_PARTS.split(value)]
    # The longest first: shorter ones are parts of longer ones.
    return tuple(sorted(echoes(found), key=lambda secret: (-len(secret), secret))) if found else ()


def echoes(secrets: Iterable[str]) -> set[bytes]:
    """What is looked for in a response: the secrets, but for short ones, which occur by chance; as they are, and as JSON has
    them, with and without escapes that it does not need."""
    found = {text for text in secrets if len(text) >= _ECHO_CHARS_MIN}
    found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in found for ascii_only in (False, True)}
    found |= {text.replace("/", "\\/") for text in found}
    return {text.encode("utf-8", "replace") for text in found}


def secret_parameters(url: str) -> list[str]:
    """The values that `redact_url` replaces in the URL's query."""
    if "?" not in url:
        return []
    url = url.partition("#")[0]
    return [url[begin:end] for begin, end in _secret_values(url)]


def _redact_parameter(match: re.Match[str]) -> str:
    separator, name, value = match.groups()
    return f"{separator}{name}={REDACTED if is_secret_name(unquote_plus(name)) else value}"


#: Characters that are kept of an answer: enough to recognise an error. The rest is stored nowhere.
ANSWER_CHARS_MAX = 200
#: Bytes of a body that are searched: more than what is kept, because white space and secrets shrink.
_SEARCHED_BYTES = 2_000


def answer_snippet(body: bytes, *, truncated: bool = False, secrets: Sequence[bytes] = ()) -> str | None:
    """The beginning of a body with white space collapsed, invisible characters as escapes, and secrets redacted; None for an
    empty one. Of a body that is not UTF-8 text, its length. `truncated`: the body was longer. `secrets` are values that a
    receiver may have repeated from the request."""
    begin = body[: _SEARCHED_BYTES + max(map(len, secrets), default=0)]
    for secret in secrets:
        begin = begin.replace(secret, REDACTED.encode())
    text = _text(begin[:_SEARCHED_BYTES], cut=truncated or len(body) > _SEARCHED_BYTES)
    if text is None:
        return f"[{'more than ' if truncated else ''}{len(body)} bytes]"
    line = visible(redact_text(" ".join(text.split())))
    if len(line) > ANSWER_CHARS_MAX:
        return line[: ANSWER_CHARS_MAX - 1] + "…"
    return line or None


def _text(data: bytes, *, cut: bool) -> str | None:
    """The text of the bytes; None if they are no text. `cut`: the last character may be incomplete."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not cut or error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    return None if "\0" in text else text


#: `[redacted]` in a URL, as it is or percent-encoded by a program that parsed the URL.
_IN_URL = re.compile(r"(?:\[|%5[Bb])redacted(?:\]|%5[Dd])")
_MARK = REDACTED.strip("[]")
_REASON = f"has {REDACTED} in place of a secret, and no stored timer has a value for it"


def withheld(url: str | None, headers: Mapping[str, str] | None) -> bool:
    """Whether the URL or a header has `[redacted]` in place of a stored secret."""
    return (url is not None and _in_url(url)) or (headers is not None and any(map(is_mark, headers.values())))


def with_headers(headers: Mapping[str, str], stored: Mapping[str, str] | None) -> dict[str, str]:
    """The headers, with the stored values in place of `[redacted]`. Raises InvalidInput with those that are not stored."""
    known = {name.lower(): value for name, value in (stored or {}).items()}
    errors = [
        FieldError(f"headers.{name}", f"{_REASON}; send the header's value")
        for name, value in headers.items()
        if is_mark(value) and name.lower() not in known
    ]
    if errors:
        raise InvalidInput(*errors)
    return {name: known[name.lower()] if is_mark(value) else value for name, value in headers.items()}


def with_url(url: str, stored: str | None, path: str = "callbackUrl") -> str:
    """The URL, or the stored one if this is its redacted form. Raises InvalidInput, which names the field `path`, for any
    other URL with `[redacted]`: the stored secrets would be sent to another destination."""
    if not _in_url(url):
        return url
    if stored is not None and not _in_url(stored) and _IN_URL.sub(REDACTED, url) == redact_url(stored):
        return stored
    raise InvalidInput(FieldError(path, f"{_REASON}; send the whole URL"))


def is_mark(value: str) -> bool:
    """Whether a header's value is `[redacted]`."""
    return value.strip() == REDACTED


def _in_url(url: str) -> bool:
    return _MARK in url and _IN_URL.search(url) is not None
