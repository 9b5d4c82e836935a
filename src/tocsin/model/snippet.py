"""What is kept of a receiver's answer: its beginning as one line of text, without secrets."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.redaction import REDACTED, redact_text
from tocsin.model.visible import visible

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
