"""The timer and its stored record."""

from __future__ import annotations

import sys
from enum import StrEnum

import msgspec

from tocsin.model.errors import InvalidInput, RecordTooNew, RecordUndecodable
from tocsin.model.raw_body import RawBody, header_conflicts
from tocsin.model.retry import RetryPolicy

#: The greatest version of the record format that this release reads. A node that meets a greater one leaves the shard to a
#: newer node. A record has the smallest version that can say what it says, so that earlier releases read what they can.
RECORD_VERSION = 2


#: What reading or writing a record may raise because of what it holds: text that is none, numbers out of range, values nested
#: deeper than the stack, more than there is memory for. One record's fault, never the process's.
UNUSABLE = (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)

#: The payload of a timer that was created without one.
NULL_PAYLOAD = msgspec.Raw(b"null")


class Status(StrEnum):
    """Where a timer stands. Only `pending` timers can still ring, be updated or be deleted."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class Attempt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call of the webhook: when it began, how long it took, what came back (`status` 0: no answer at all)."""

    at: int
    duration_us: int
    status: int = 0
    error: str | None = None


class CreateKey(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An idempotency key under which the timer was created: hashes, as text, of the key and of what was sent with it."""

    key: str
    body: str


class Timer(msgspec.Struct, gc=False, omit_defaults=True):
    """A timer as its owner shard knows it; all instants and durations are microseconds.

    `execute_at` is the instant asked for; a retry moves only the row's key, not this. `attempts` and
    `first_attempt_at` count from creation, an update of the instant, or a reschedule by the receiver. `firing` names what is
    fired, and is part of every attempt's `webhook-id`: another after each of these and after any other update.
    `payload` is the JSON text as sent; `body`, if it is not None, is sent instead of the envelope with the payload.
    `retry` is None while the namespace's policy counts. `attempt_log` keeps the last few attempts of all firings. `keys`
    are the last few idempotency keys, the newest last.
    """

    namespace: str
    id: str
    execute_at: int
    url: str
    created_at: int
    updated_at: int
    payload: msgspec.Raw = NULL_PAYLOAD
    method: str = "POST"
    headers: dict[str, str] | None = None
    retry: RetryPolicy | None = None
    timeout_us: int = 10_000_000
    tags: tuple[str, ...] = ()
    traceparent: str | None = None
    firing: str = ""
    attempts: int = 0
    first_attempt_at: int | None = None
    last_error: str | None = None
    attempt_log: tuple[Attempt, ...] = ()
    status: Status = Status.PENDING
    executed_at: int | None = None
    keys: tuple[CreateKey, ...] = ()
    body: RawBody | None = None


class _Envelope(msgspec.Struct, gc=False):
    v: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Timer)
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_PREFIX_1, _PREFIX_2 = b'{"v":1,', b'{"v":2,'


def needs_format_2(timer: Timer) -> bool:
    """Whether an earlier release would lose something of the timer: then its record must be one that it leaves alone."""
    return bool(timer.keys) or timer.body is not None


def encode_record(timer: Timer) -> bytes:
    """The stored form: JSON text that a person can read in any database, its format version first."""
    return (_PREFIX_2 if needs_format_2(timer) else _PREFIX_1) + _encoder.encode(timer)[1:]


def decode_record(record: bytes) -> Timer:
    """The timer of a stored record.

    Raises RecordTooNew for a format of a later version, RecordUndecodable for anything else that can't be read.
    """
    if not record.startswith((_PREFIX_1, _PREFIX_2)):
        try:
            version = _envelope_decoder.decode(record).v
        except UNUSABLE as error:
            raise RecordUndecodable(str(error) or type(error).__name__) from error
        if version > RECORD_VERSION:
            raise RecordTooNew(f"record format {version}, this node reads up to {RECORD_VERSION}")
    try:
        return _decoder.decode(record)
    except RecursionError:
        return _decode_deep(record)
    except UNUSABLE as error:
        raise RecordUndecodable(str(error) or type(error).__name__) from error


def _decode_deep(record: bytes) -> Timer:
    """The same for a payload that is nested deeper than what is accepted now, as former releases took it from receivers.

    It was read once before it was stored, with less of the stack in use than here, so that there is an end to it.
    """
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(2 * limit)
        return _decoder.decode(record)
    except UNUSABLE as error:
        raise RecordUndecodable(str(error) or type(error).__name__) from error
    finally:
        sys.setrecursionlimit(limit)


def unreadable_timer(namespace: str, timer_id: str, execute_at: int, reason: str) -> Timer:
    """What stands for a timer whose record can't be decoded: its name and instant, and why in `last_error`."""
    return Timer(namespace, timer_id, execute_at, "", execute_at, execute_at, last_error=reason)


class Changes(msgspec.Struct, frozen=True, gc=False):
    """What an update asks for; UNSET leaves a field as it is, None (where allowed) clears it."""

    execute_at: int | msgspec.UnsetType = msgspec.UNSET
    url: str | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    retry: RetryPolicy | None | msgspec.UnsetType = msgspec.UNSET
    timeout_us: int | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    headers: dict[str, str] | None | msgspec.UnsetType = msgspec.UNSET
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    body: RawBody | msgspec.UnsetType = msgspec.UNSET

    def apply(self, timer: Timer, now_us: int) -> Timer:
        """The timer as changed. With a new instant, attempts start over; payload and raw body replace one another.
        InvalidInput for headers that can't stand beside the timer's raw body."""
        wanted = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not msgspec.UNSET}
        if "execute_at" in wanted:
            wanted.update(attempts=0, first_attempt_at=None)
        if "body" in wanted:
            wanted["payload"] = NULL_PAYLOAD
        elif "payload" in wanted:
            wanted["body"] = None
        changed = msgspec.structs.replace(timer, updated_at=now_us, **wanted)
        if changed.body is not None and changed.headers and ("body" in wanted or "headers" in wanted):
            errors = header_conflicts(changed.headers)
            if errors:
                raise InvalidInput(*errors)
        return changed
