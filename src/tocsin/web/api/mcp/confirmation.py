"""Tokens of dry runs: what makes the second step do what the first has shown, for the same caller, soon."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND
from tocsin.web.api.mcp.options import CONFIRM_WITHIN_S

#: Characters of an instant in a token, in hexadecimal seconds.
_INSTANT_CHARS_MAX = 16


class Confirmations:
    """Issues and checks tokens. Nothing is stored: a token is a message authentication code of caller, tool, arguments, the
    rows that the dry run has found and the instant at which it ends, by a secret that all nodes of the store share. What
    was done changes the rows, and so ends its token."""

    def __init__(self, secret: str, now_us: Callable[[], int]) -> None:
        self._secret = secret.encode()
        self._now_us = now_us

    def issue(self, caller: str, tool: str, arguments: object, rows: object) -> tuple[str, int]:
        """A token, and when it ends, in microseconds since 1970. `arguments` and `rows` are made of JSON's types."""
        ends_s = self._now_us() // US_PER_SECOND + CONFIRM_WITHIN_S
        return self._token(caller, tool, arguments, ends_s, _digest(rows)), ends_s * US_PER_SECOND

    def check(self, token: str, caller: str, tool: str, arguments: object, rows: object) -> None:
        """Raises InvalidInput for a token that was not issued for this, or has ended, or if the dry run would find other rows
        now."""
        ends, _, rest = token.partition(".")
        state, _, _ = rest.partition(".")
        try:
            ends_s = int(ends[:_INSTANT_CHARS_MAX], 16)
        except ValueError:
            ends_s = 0
        issued = self._token(caller, tool, arguments, ends_s, state)
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), issued.encode("utf-8", "surrogatepass")):
            raise _bad("was not issued to this caller for this tool and these arguments; take the dry run again")
        if self._now_us() >= ends_s * US_PER_SECOND:
            raise _bad(f"has ended: it could be used for {CONFIRM_WITHIN_S} s; take the dry run again")
        if state != _digest(rows):
            raise _bad("no longer applies: what would happen has changed, and nothing was done; take the dry run again")

    def _token(self, caller: str, tool: str, arguments: object, ends_s: int, state: str) -> str:
        message = _canonical([caller, tool, arguments, ends_s, state])
        code = hmac.new(self._secret, message, hashlib.sha256).digest()
        return f"{ends_s:x}.{state}.{_text(code)}"


def _bad(reason: str) -> InvalidInput:
    return InvalidInput(FieldError("token", reason))


def _digest(rows: object) -> str:
    return _text(hashlib.sha256(_canonical(rows)).digest()[:12])


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()
