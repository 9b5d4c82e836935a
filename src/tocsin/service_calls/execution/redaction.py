"""What is stored of requests and responses: without secrets, of limited size, and as text that every database accepts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tocsin.model.redaction import REDACTED, is_secret, redact_parameters

#: Headers whose values are URLs or contain them.
_URL_HEADERS = frozenset({"location", "content-location", "referer", "link", "refresh"})

#: Control characters become visible: as control pictures or as the replacement character. Tabs and line breaks stay.
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_VISIBLE |= (
    {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd") | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)
_INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

#: Replaces each byte of a secret until the text is cut. The byte occurs in no UTF-8 text and in no secret; where a body has
#: it, another non-UTF-8 byte takes its place.
_HIDDEN, _NO_TEXT = b"\xff", b"\xfe"
_HIDDEN_BYTES = re.compile(rb"\xff+")


class Snippet(NamedTuple):
    """The beginning of a text. `cut`: the text was longer."""

    text: str
    cut: bool


def redact_header(name: str, value: str, bytes_max: int) -> str:
    """The value as it is stored."""
    if is_secret(name, value):
        return REDACTED
    if name.lower() in _URL_HEADERS:
        value = redact_parameters(value)
    return cut_text(value, bytes_max).text


def snippet(data: bytes, bytes_max: int, secrets: Collection[bytes] = ()) -> Snippet:
    """The beginning of a body as text of at most `bytes_max` bytes of UTF-8, with the given secrets redacted.

    Only the part that can be kept is searched, including a secret that begins in it and ends after it.
    """
    # A character that is cut in two here lies beyond the limit, and the second cut removes it.
    begin = data[: bytes_max + 4]
    if secrets:
        searched = data[: len(begin) + max(map(len, secrets))].replace(_HIDDEN, _NO_TEXT)
        for secret in secrets:
            searched = searched.replace(secret, _HIDDEN * len(secret))
        begin = _HIDDEN_BYTES.sub(REDACTED.encode(), searched[: len(begin)])
    text = begin.decode("utf-8", "replace")
    taken, cut = cut_text(text, bytes_max)
    return Snippet(taken, cut or len(data) > bytes_max)


def without_secrets(values: Sequence[str], secrets: Collection[bytes]) -> Sequence[str]:
    """The values of headers with the given secrets redacted."""
    if not secrets or not values:
        return values
    # Joined into one text that is searched once per secret: there may be hundreds of both.
    text = "\n".join(value.replace("\n", " ") for value in values)
    for secret in secrets:
        text = text.replace(secret.decode("utf-8", "replace"), REDACTED)
    return text.split("\n")


def cut_text(text: str, bytes_max: int) -> Snippet:
    """At most `bytes_max` bytes of UTF-8 of the text. No character is cut in two, and control characters become
    visible."""
    if len(text) <= bytes_max and text.isascii() and text.isprintable():
        return Snippet(text, False)
    if _INVISIBLE.search(text) is not None:
        text = text.translate(_VISIBLE)
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return Snippet(text, False)
    return Snippet(encoded[:bytes_max].decode("utf-8", "ignore"), True)
