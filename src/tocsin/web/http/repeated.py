"""Repeatable creates: the idempotency key of a request, and what it covers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.timer import CreateKey
from tocsin.web.http import wire
from tocsin.web.http.constraints import IDEMPOTENCY_KEY_CHARS_MAX
from tocsin.web.http.debounced import debounce_of

_KEY = re.compile(rf"[\x21-\x7e]{{1,{IDEMPOTENCY_KEY_CHARS_MAX}}}\Z")
#: A string of Structured Field Values (RFC 9651): the header's standard form, which few clients send.
_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\])*"\Z')
_ESCAPED = re.compile(r'\\(["\\])')
#: Bytes of a hash that are stored: only the keys of one timer are compared, at most four.
_HASH_BYTES = 16

HEADER = b"idempotency-key"
#: Response header of a request that an earlier one with its key has done.
REPLAYED = (b"idempotency-replayed", b"true")
#: Response header of a request that has written nothing, because what it asks for is there.
UNCHANGED = (b"tocsin-existing", b"true")
#: `1`: the request's keys have not been sent before.
FIRST_TRY_HEADER = b"tocsin-first-try"
_encode = msgspec.json.Encoder(order="deterministic").encode


def key_in(header: bytes | None) -> str | None:
    """The key in the header Idempotency-Key, quoted or not. Raises InvalidInput."""
    if header is None:
        return None
    key = header.decode("latin-1").strip()
    if _QUOTED.match(key):
        key = _ESCAPED.sub(r"\1", key[1:-1])
    if not _KEY.match(key):
        raise InvalidInput(FieldError("Idempotency-Key", f"the header {_reason(key)}"))
    return key


def agreed_key(field: str | UnsetType, named: str | None) -> str | None:
    """The request's key: that of the field `idempotencyKey`, or the header's, `named`. Raises InvalidInput if they differ."""
    if field is UNSET:
        return named
    if named is not None and field != named:
        reason = "differs from the header Idempotency-Key; send one of them, or the same value in both"
        raise InvalidInput(FieldError("idempotencyKey", reason))
    return field


def bad_key(field: str | UnsetType) -> list[FieldError]:
    """What is wrong with the field `idempotencyKey` of a request, if anything is."""
    return [] if field is UNSET or _KEY.match(field) else [FieldError("idempotencyKey", _reason(field))]


def refuse_key(headers: Mapping[bytes, bytes]) -> None:
    """Raises InvalidInput for a request with an idempotency key, to an operation that does its work again each time."""
    if HEADER in headers:
        reason = "the header is not supported here, where each request is done again; leave it out"
        raise InvalidInput(FieldError("Idempotency-Key", reason))


def is_first_try(header: bytes | None) -> bool:
    """Whether the header Tocsin-First-Try states that the request's keys have not been sent before. Raises InvalidInput."""
    if header is None:
        return False
    if header.strip() != b"1":
        raise InvalidInput(FieldError("Tocsin-First-Try", "the header must be 1; leave it out of a repeated request"))
    return True


def condition_of(
    sent: wire.CreateTimer, named: str | None, execute_at: int, *, first_try: bool = False
) -> Condition | None:
    """The condition under which the timer is created; None for a plain create. `named` is the key in the header,
    `execute_at` the requested instant, `first_try` whether the key has not been sent before.

    Raises InvalidInput for a key that is not valid, or differs from the header's.
    """
    field = sent.idempotency_key
    on_conflict = OnConflict.REPLACE if sent.on_conflict is UNSET else sent.on_conflict
    if wrong := bad_key(field):
        raise InvalidInput(*wrong)
    named = agreed_key(field, named)
    debounce = debounce_of(sent)
    if named is None:
        return None if on_conflict is OnConflict.REPLACE else Condition(on_conflict, debounce=debounce)
    key = CreateKey(_hash(named.encode()), _body_hash(sent, named, execute_at))
    return Condition(on_conflict, key, first_try, debounce)


def _reason(key: str) -> str:
    if not key:
        return "is empty; send a value unique to this request, such as a UUID"
    if len(key) > IDEMPOTENCY_KEY_CHARS_MAX:
        return f"has {len(key)} characters; at most {IDEMPOTENCY_KEY_CHARS_MAX} are accepted"
    return "must have only visible ASCII characters, without spaces; send a value such as a UUID"


def _body_hash(sent: wire.CreateTimer, key: str, execute_at: int) -> str:
    """The hash of the request's content, in any order of fields; without `delay`, so that a client may repeat the request
    with the remaining delay. It includes the key, so that hashes do not reveal equal requests under different keys."""
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
