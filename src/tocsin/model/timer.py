"""The timer, its raw body, and its stored record."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tocsin.model.debounce import DebounceWindow
from tocsin.model.errors import FieldError, InvalidInput, RecordTooNew, RecordUndecodable
from tocsin.model.hooks import NO_HOOKS, Event, Hook, Hooks
from tocsin.model.monitor import Monitor
from tocsin.model.retry import RetryPolicy
from tocsin.model.schedule import Schedule, Source
from tocsin.model.validation import folded

#: The default content types.
JSON_TYPE, TEXT_TYPE, BINARY_TYPE = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
#: Methods whose requests have no body: proxies and servers drop or refuse it.
BODILESS_METHODS = frozenset({"GET", "HEAD"})
#: The headers that have the envelope's members next to a raw body.
ENVELOPE_HEADERS = ("tocsin-namespace", "tocsin-timer-id", "tocsin-execute-at", "tocsin-fired-at", "tocsin-attempt")


class RawBody(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A body in exactly one of three forms, as the client gave it: `json` is JSON text, sent byte for byte; `text` is sent in
    UTF-8; `base64` is sent decoded."""

    content_type: str
    json: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET

    def sent(self) -> bytes:
        """The bytes of the request's body. Raises ValueError if the form can't be encoded or decoded."""
        if self.text is not msgspec.UNSET:
            return self.text.encode()
        if self.base64 is not msgspec.UNSET:
            return base64.b64decode(self.base64, validate=True)
        return bytes(self.json) if self.json is not msgspec.UNSET else b""

    @property
    def form_chars(self) -> int:
        """The length of the form that is stored and shown."""
        return max(len(form) for form in (self.json, self.text, self.base64) if not isinstance(form, msgspec.UnsetType))


def header_conflicts(names: Iterable[str]) -> list[FieldError]:
    """The errors of those of a timer's headers that are not allowed with a raw body."""
    reason = "is not allowed with body; set body.contentType instead"
    return [FieldError(f"headers.{name}", reason) for name in names if folded(name) == "content-type"]


#: The version of the record format. A node that reads a greater one leaves the shard to a newer node.
RECORD_VERSION = 1

#: What encoding or decoding a record may raise because of its contents: invalid text, numbers out of range, nesting deeper
#: than the stack, size beyond the memory. They concern one record, never the process.
UNUSABLE = (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)

#: The payload of a timer created without one.
NULL_PAYLOAD = msgspec.Raw(b"null")


class Status(StrEnum):
    """A timer's status. Only `pending` timers can fire, be updated or be deleted."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


class LoggedAttempt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call of the webhook: when it began, how long it took, the response's status (0: no response), and the error.
    `answer` is the beginning of the response's body, unless the receiver just accepted the call. `batch` is the `webhook-id`
    of the batch that it was part of; None if it was a request of its own."""

    at: int
    duration_us: int
    status: int = 0
    error: str | None = None
    answer: str | None = None
    batch: str | None = None


class CreateKey(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An idempotency key under which the timer was created: hashes, as text, of the key and of the request's contents."""

    key: str
    body: str


class Timer(msgspec.Struct, gc=False, omit_defaults=True):
    """A timer as its shard's owner knows it. All instants and durations are microseconds.

    `execute_at` is the instant asked for; a retry moves the row's key, not this. `attempts` and `first_attempt_at` start over
    with an update of the instant or a reschedule by the receiver. `firing` identifies the firing and is part of every
    attempt's `webhook-id`; it changes with each of these and with any other update. `payload` is the JSON text as sent; if
    `body` is not None, it is sent instead of the envelope with the payload. `retry` is None while the namespace's policy
    applies. `attempt_log` has the last few attempts of all firings, `keys` the last few idempotency keys, newest last. No
    attempt begins later than `expire_after_us` after `execute_at`; None: however late. `description` is for people.
    `flow_key` names the flow whose limits apply to its attempts; empty: only its namespace's do. `credential` names what its
    requests identify themselves with; empty: nothing. `schedule` is None on timers that fire once; on a schedule's row,
    `execute_at` is the instant of the occurrence. `hooks` are notified of its end. On a notification, which is a timer, too,
    `notifies` is what it reports about the timer or schedule whose namespace and id it has. `failed_before`: it had failed,
    and was replayed, and has not succeeded since. `replay` is set while the firing is one that had ended and was replayed:
    the name that the replay's write would have given to a new one. `reduced`: the timer has finished, and only what its
    idempotency keys need is kept of it. `debounced` is set on the timers of debounced creates, `monitor` on the rows of
    monitors, which call nobody.
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
    attempt_log: tuple[LoggedAttempt, ...] = ()
    status: Status = Status.PENDING
    executed_at: int | None = None
    keys: tuple[CreateKey, ...] = ()
    body: RawBody | None = None
    expire_after_us: int | None = None
    description: str | None = None
    flow_key: str = ""
    credential: str = ""
    schedule: Schedule | None = None
    hooks: Hooks | None = None
    notifies: Event | None = None
    failed_before: bool = False
    replay: str = ""
    reduced: bool = False
    debounced: DebounceWindow | None = None
    monitor: Monitor | None = None

    @property
    def expires_at(self) -> int | None:
        """The last instant at which an attempt may begin; None: there is no such limit. An occurrence by hand, or of an
        instant that is fired once more, is never too late."""
        if self.expire_after_us is None or (
            self.schedule is not None and self.schedule.state.source is not Source.REGULAR
        ):
            return None
        return self.execute_at + self.expire_after_us

    @property
    def has_joined(self) -> bool:
        """Whether the timer is several debounced creates by now, so that the latest of them has added no timer."""
        return self.debounced is not None and self.debounced.creates > 1


class _Envelope(msgspec.Struct, gc=False):
    v: int


class _Damaged(msgspec.Struct, gc=False):
    v: int
    damaged: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Timer)
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_damaged_decoder = msgspec.json.Decoder(_Damaged)
_PREFIX = b'{"v":1,'
_PREFIX_DAMAGED = b'{"v":0,'
#: Characters that are kept of the reason why a store can't read a row.
_DAMAGE_CHARS_MAX = 200


def encode_record(timer: Timer) -> bytes:
    """The stored form: JSON text, readable in any database, that begins with its format version."""
    return _PREFIX + _encoder.encode(timer)[1:]


def decode_record(record: bytes) -> Timer:
    """The timer of a stored record.

    Raises RecordTooNew for a newer format version, RecordUndecodable for anything else that can't be decoded.
    """
    if not record.startswith(_PREFIX):
        try:
            if record.startswith(_PREFIX_DAMAGED):
                raise RecordUndecodable(_damaged_decoder.decode(record.partition(b"\n")[0]).damaged)
            version = _envelope_decoder.decode(record).v
        except UNUSABLE as error:
            raise RecordUndecodable(str(error) or type(error).__name__) from error
        if version > RECORD_VERSION:
            raise RecordTooNew(f"the record has format {version}; this node reads format {RECORD_VERSION}")
    try:
        return _decoder.decode(record)
    except UNUSABLE as error:
        raise RecordUndecodable(str(error) or type(error).__name__) from error


class PlannedDefinition(msgspec.Struct, gc=False):
    """What of a schedule's definition decides whether its plan is still the right one."""

    cron: str | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


class PlannedState(msgspec.Struct, gc=False):
    """The time zones and calendars that planned a schedule, as `State` has them."""

    tzdata: str = ""
    calendars: str = ""


class PlannedSchedule(msgspec.Struct, gc=False):
    """The parts of a schedule that show which calendars it names, and by what it was planned."""

    definition: PlannedDefinition
    state: PlannedState


class _Planned(msgspec.Struct, gc=False):
    schedule: PlannedSchedule


_planned_decoder = msgspec.json.Decoder(_Planned)


def planned_schedule(record: bytes) -> PlannedSchedule | None:
    """These parts of a stored schedule, in a fraction of the time that `decode_record` takes; None for a record that can't be
    decoded, or is no schedule's."""
    try:
        return _planned_decoder.decode(record).schedule
    except UNUSABLE:
        return None


def damaged_record(error: BaseException, stored: bytes) -> bytes:
    """The record of a row whose stored form its store can't read: the reason as a line of JSON, then the stored bytes
    unchanged. `decode_record` refuses it with the reason."""
    reason = f"the stored row is damaged: {type(error).__name__}: {error}"[:_DAMAGE_CHARS_MAX]
    return _encoder.encode(_Damaged(0, reason)) + b"\n" + stored


def unreadable_timer(namespace: str, timer_id: str, execute_at: int, reason: str) -> Timer:
    """A placeholder for a timer whose record can't be decoded: its id and instant, and the reason in `last_error`."""
    return Timer(namespace, timer_id, execute_at, "", execute_at, execute_at, last_error=reason)


class Changes(msgspec.Struct, frozen=True, gc=False):
    """The fields that an update changes. UNSET leaves a field unchanged; None, where allowed, clears it. `shift_us` moves the
    instant that the timer has then."""

    execute_at: int | msgspec.UnsetType = msgspec.UNSET
    url: str | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    retry: RetryPolicy | None | msgspec.UnsetType = msgspec.UNSET
    timeout_us: int | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    headers: dict[str, str] | None | msgspec.UnsetType = msgspec.UNSET
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    body: RawBody | msgspec.UnsetType = msgspec.UNSET
    expire_after_us: int | msgspec.UnsetType | None = msgspec.UNSET
    description: str | msgspec.UnsetType | None = msgspec.UNSET
    #: Those of some events, by `Hooks`'s names; None removes one.
    hooks: dict[str, Hook | None] | msgspec.UnsetType = msgspec.UNSET
    #: Empty: the timer has none then.
    flow_key: str | msgspec.UnsetType = msgspec.UNSET
    #: Empty: the timer has none then.
    credential: str | msgspec.UnsetType = msgspec.UNSET
    #: The namespace's credentials that may go to the new `url`; UNSET: that is not checked.
    permitted: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    shift_us: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def moves(self) -> bool:
        """Whether the timer gets another instant."""
        return self.execute_at is not msgspec.UNSET or self.shift_us is not msgspec.UNSET

    def apply(self, timer: Timer, now_us: int) -> Timer:
        """The changed timer. A new instant starts the attempts over; payload and raw body replace each other. Raises
        InvalidInput for headers that are not allowed with the timer's raw body, for content that its method does not
        send, and for a URL to which its credential may not go."""
        wanted = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not msgspec.UNSET}
        permitted = wanted.pop("permitted", None)
        if "shift_us" in wanted:
            wanted["execute_at"] = timer.execute_at + wanted.pop("shift_us")
        if "execute_at" in wanted:
            wanted.update(attempts=0, first_attempt_at=None)
        if "body" in wanted:
            wanted["payload"] = NULL_PAYLOAD
        elif "payload" in wanted:
            wanted["body"] = None
        if timer.debounced is not None and ("body" in wanted or "payload" in wanted):
            # An array of its creates' payloads no longer.
            wanted["debounced"] = msgspec.structs.replace(timer.debounced, collected=0)
        if "hooks" in wanted:
            wanted["hooks"] = (timer.hooks or NO_HOOKS).changed(wanted["hooks"])
        changed = msgspec.structs.replace(timer, updated_at=now_us, **wanted)
        if permitted is not None and changed.credential and changed.credential not in permitted:
            reason = f"is not a URL to which the timer's credential {changed.credential!r} may go; change its hosts, or send "
            raise InvalidInput(FieldError("callbackUrl", f"{reason}another credential, or null for none"))
        if changed.body is not None and changed.headers and ("body" in wanted or "headers" in wanted):
            errors = header_conflicts(changed.headers)
            if errors:
                raise InvalidInput(*errors)
        if not wanted.keys().isdisjoint(("method", "payload", "body")):
            errors = unsent(changed.method, changed.payload, changed.body)
            if errors:
                raise InvalidInput(*errors)
        return changed


def unsent(
    method: str, payload: msgspec.Raw | msgspec.UnsetType, body: RawBody | msgspec.UnsetType | None
) -> list[FieldError]:
    """The errors of a callback whose method does not send its content."""
    if method not in BODILESS_METHODS:
        return []
    if isinstance(body, RawBody):
        if not body.form_chars:
            return []
        return [FieldError("body", f"is not sent with {method}; give it an empty text, or use another method")]
    if payload is msgspec.UNSET or payload == NULL_PAYLOAD:
        return []
    return [FieldError("payload", f"is not sent with {method}; leave it out or send null, or use another method")]
