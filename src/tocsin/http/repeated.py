"""Creates that can be repeated: what of a request is an idempotency key, and what it covers."""

from __future__ import annotations

import hashlib
import re

import msgspec
from msgspec import UNSET

from tocsin.http import wire
from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.timer import CreateKey

#: Characters of a key: more than a UUID, or the name of what a client does, needs.
KEY_CHARS_MAX = 255
_KEY = re.compile(rf"[\x21-\x7e]{{1,{KEY_CHARS_MAX}}}\Z")
#: A string of Structured Field Values (RFC 9651): so the header is meant to be sent, and few do.
_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\])*"\Z')
_ESCAPED = re.compile(r'\\(["\\])')
#: Bytes of a hash that are kept: keys of one timer are compared, four at a time.
_HASH_BYTES = 16

HEADER = b"idempotency-key"
_encode = msgspec.json.Encoder(order="deterministic").encode


def key_in(header: bytes | None) -> str | None:
    """The key that the header Idempotency-Key brings, quoted or not; InvalidInput."""
    if header is None:
        return None
    key = header.decode("latin-1").strip()
    if _QUOTED.match(key):
        key = _ESCAPED.sub(r"\1", key[1:-1])
    if not _KEY.match(key):
        raise InvalidInput(FieldError("Idempotency-Key", f"the header {_reason(key)}"))
    return key


def condition_of(sent: wire.CreateTimer, named: str | None, execute_at: int) -> Condition | None:
    """On what condition the timer is created; None for a plain create. `named` is the key that the header brings, and
    `execute_at` the instant asked for.

    InvalidInput for a key that is none, or another one than the header's.
    """
    field = sent.idempotency_key
    on_conflict = OnConflict.REPLACE if sent.on_conflict is UNSET else sent.on_conflict
    if field is not UNSET:
        if not _KEY.match(field):
            raise InvalidInput(FieldError("idempotencyKey", _reason(field)))
        if named is not None and field != named:
            reason = "differs from the header Idempotency-Key; send one of the two, or the same twice"
            raise InvalidInput(FieldError("idempotencyKey", reason))
        named = field
    if named is None:
        return None if on_conflict is OnConflict.REPLACE else Condition(on_conflict)
    return Condition(on_conflict, CreateKey(_hash(named.encode()), _body_hash(sent, named, execute_at)))


def _reason(key: str) -> str:
    if not key:
        return "is empty; send something unique to this create, such as a UUID"
    if len(key) > KEY_CHARS_MAX:
        return f"has {len(key)} characters; at most {KEY_CHARS_MAX} are accepted"
    return "has other characters than visible ASCII ones, without spaces; send something like a UUID"


def _body_hash(sent: wire.CreateTimer, key: str, execute_at: int) -> str:
    """Of all that the request asks for, in whichever order; not of `delay`, so that a client may send what is left of it. The
    key goes in, so that equal requests under different keys, which may hold secrets, can't be told from their hashes."""
    headers = sent.headers
    if headers:
        headers = {name.lower(): value for name, value in headers.items()}
    covered = msgspec.structs.replace(
        sent, delay=UNSET, idempotency_key=UNSET, on_conflict=UNSET, headers=headers,
        execute_at=UNSET if sent.execute_at is UNSET else str(execute_at),
        id=sent.id if sent.timer_id is UNSET else sent.timer_id, timer_id=UNSET,
    )  # fmt: skip
    return _hash(key.encode() + b"\0" + _encode(covered))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).digest()[:_HASH_BYTES].hex()
