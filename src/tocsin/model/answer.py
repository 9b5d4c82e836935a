"""The callback protocol: from an attempt's outcome to a verdict. `docs/reference/callbacks.md` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from tocsin.model.instants import US_PER_SECOND, parse_instant
from tocsin.model.validation import is_deeper_than


@dataclass(frozen=True, slots=True)
class Response:
    """The receiver's response: its status, the beginning of its body (`truncated` if it was longer), its Retry-After."""

    status: int
    body: bytes = b""
    retry_after: str | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class MissingResult(Response):
    """The response to a batch, for a timer that has no result in it: the attempt failed, whatever the status, and is retried,
    since nothing shows that it is because of this timer."""


@dataclass(frozen=True, slots=True)
class StaleToken(Response):
    """A 401 to a request whose token was issued a while ago: the token may have been revoked, and another one is fetched. The
    attempt failed, and is retried."""


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No usable response. `code` is a stable word such as TIMEOUT, CONNECTION_FAILED or BAD_RESPONSE.

    `final`: no retry can succeed (a request that can't be sent as it is).
    """

    code: str
    detail: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request was not sent for a local reason (no connection slot, no file descriptor, a full resolver), which is no
    statement about the receiver. `code` is a stable word such as NO_CONNECTION_SLOT."""

    code: str
    detail: str = ""


#: The code of Refused.
EGRESS_REFUSED = "EGRESS_REFUSED"


@dataclass(frozen=True, slots=True)
class Refused(NotSent):
    """The request was not sent, because this node's settings forbid every address of its host. Other settings, another node
    or another address of the name may permit it. `detail` may be shown to clients; `addresses` are the host's, which only the
    operator may know."""

    addresses: str = ""


@dataclass(frozen=True, slots=True)
class Unopened(NotSent):
    """The request was not sent, because one of its secrets can't be opened: this node lacks the key, or the stored text was
    changed. Another node, or this one after a restart with the key, may open it."""


@dataclass(frozen=True, slots=True)
class NoCredential(NotSent):
    """The request was not sent, because its credential can't be sent to `destination` now. Clients may see `detail`."""

    destination: str = ""


Outcome = Response | NoResponse | NotSent


def is_plain_acceptance(outcome: Outcome) -> bool:
    """Whether the outcome is a 2xx response without a body, which `judge` takes as done under every rule."""
    return type(outcome) is Response and 200 <= outcome.status < 300 and not outcome.body and not outcome.truncated


@dataclass(frozen=True, slots=True)
class Done:
    """The receiver accepted the callback."""


@dataclass(frozen=True, slots=True)
class Reschedule:
    """The receiver wants to be called again at `execute_at`, with `payload` if that is not None."""

    execute_at: int
    payload: msgspec.Raw | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; `final` forbids a retry, `not_before_us` (Retry-After) delays one."""

    error: str
    final: bool = False
    not_before_us: int | None = None


Verdict = Done | Reschedule | Failed


class _Wishes(msgspec.Struct, rename="camel"):
    """The members of a response body that matter. Values stay JSON text, so that one of the wrong type does not hide the
    others."""

    ok: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    next_execute_at: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _StrictBody(msgspec.Struct, rename="camel"):
    ok: bool | msgspec.UnsetType | None = msgspec.UNSET
    next_execute_at: str | msgspec.UnsetType | None = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_wishes = msgspec.json.Decoder(_Wishes).decode
_decode_strict = msgspec.json.Decoder(_StrictBody).decode
_decode_text = msgspec.json.Decoder(str).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_JSON_SPACE = b" \t\r\n"
_DONE = Done()
_NOT_OK = Failed("CALLBACK_NOT_OK: the receiver answered ok: false")
#: Client errors that may be temporary, and are retried.
RETRIED_4XX = frozenset({408, 425, 429})
#: Answers whose Retry-After may close a flow until then.
PAUSING = frozenset({429, 503})


def judge(
    outcome: Response | NoResponse,
    *,
    now_us: int,
    retry_after_us_max: int,
    instant_us_max: int,
    payload_bytes_max: int,
    payload_depth_max: int,
    strict: bool = False,
) -> Verdict:
    """The verdict on one attempt. Never raises.

    `retry_after_us_max` limits the delay that Retry-After can ask for, `instant_us_max` the instant of a reschedule. A
    reschedule beyond it, or with a payload of more than `payload_bytes_max` bytes or `payload_depth_max` nested levels, is an
    invalid response, and is retried. `strict`: a 2xx response is done only with an empty body or `ok: true`.
    """
    if isinstance(outcome, NoResponse):
        text = f"{outcome.code}: {outcome.detail}" if outcome.detail else outcome.code
        return Failed(text, final=outcome.final)
    status = outcome.status
    if isinstance(outcome, MissingResult):
        not_before_us = retry_after_at(outcome.retry_after, now_us, retry_after_us_max)
        if 200 <= status < 300:
            return Failed(
                "NO_RESULT: the response to the batch has no result for this timer", not_before_us=not_before_us
            )
        return Failed(f"HTTP_{status}", not_before_us=not_before_us)
    if isinstance(outcome, StaleToken):
        not_before_us = retry_after_at(outcome.retry_after, now_us, retry_after_us_max)
        return Failed(f"HTTP_{status}: its token may have been revoked", not_before_us=not_before_us)
    if 200 <= status < 300:
        if strict:
            return _judge_strictly(outcome, instant_us_max, payload_bytes_max, payload_depth_max)
        return _judge_body(outcome, instant_us_max, payload_bytes_max, payload_depth_max)
    error = f"HTTP_{status}"
    if 400 <= status < 500 and status not in RETRIED_4XX:
        return Failed(error, final=True)
    return Failed(error, not_before_us=retry_after_at(outcome.retry_after, now_us, retry_after_us_max))


def _judge_body(outcome: Response, instant_us_max: int, payload_bytes_max: int, payload_depth_max: int) -> Verdict:
    """Done, unless the body is a JSON object that asks for something else. An unreadable body asks for nothing."""
    body = outcome.body
    if not body or outcome.truncated or not body.lstrip(_JSON_SPACE).startswith(b"{"):
        return _DONE
    try:
        wishes = _decode_wishes(body)
    except _UNREADABLE:
        return _DONE
    wanted, ok = wishes.next_execute_at, wishes.ok
    # The decoder leaves the values unread, so they may not be UTF-8.
    if not isinstance(wanted, msgspec.UnsetType) and bytes(wanted) != b"null":
        if not _is_utf8(body):
            return _DONE
    elif isinstance(ok, msgspec.UnsetType) or bytes(ok) != b"false" or not _is_utf8(body):
        return _DONE
    else:
        return _NOT_OK
    try:
        text = _decode_text(wanted)
    except _UNREADABLE:
        return Failed("INVALID_CALLBACK_RESPONSE: nextExecuteAt is not a string")
    return _reschedule(text, wishes.payload, instant_us_max, payload_bytes_max, payload_depth_max)


def _judge_strictly(outcome: Response, instant_us_max: int, payload_bytes_max: int, payload_depth_max: int) -> Verdict:
    if outcome.truncated:
        return Failed("INVALID_CALLBACK_RESPONSE: the response body is longer than the limit")
    if not outcome.body.strip():
        return _DONE
    try:
        body = _decode_strict(outcome.body)
    except _UNREADABLE as error:
        return Failed(f"INVALID_CALLBACK_RESPONSE: {error}")
    if isinstance(body.next_execute_at, str):
        return _reschedule(body.next_execute_at, body.payload, instant_us_max, payload_bytes_max, payload_depth_max)
    if body.ok is True:
        return _DONE
    if body.ok is False:
        return _NOT_OK
    return Failed("INVALID_CALLBACK_RESPONSE: the response has neither ok nor nextExecuteAt")


def _reschedule(
    text: str,
    raw: msgspec.Raw | msgspec.UnsetType,
    instant_us_max: int,
    payload_bytes_max: int,
    payload_depth_max: int,
) -> Verdict:
    try:
        execute_at = parse_instant(text)
    except ValueError as error:
        return Failed(f"INVALID_CALLBACK_RESPONSE: nextExecuteAt {error}")
    if execute_at > instant_us_max or execute_at < 0:
        return Failed("INVALID_CALLBACK_RESPONSE: nextExecuteAt is out of range")
    if isinstance(raw, msgspec.UnsetType):
        return Reschedule(execute_at, None)
    payload = bytes(raw)
    if len(payload) > payload_bytes_max:
        return Failed("INVALID_CALLBACK_RESPONSE: payload is longer than the limit")
    if not _is_utf8(payload):
        return Failed("INVALID_CALLBACK_RESPONSE: payload is not UTF-8")
    if is_deeper_than(payload, payload_depth_max):
        return Failed(f"INVALID_CALLBACK_RESPONSE: payload has more than {payload_depth_max} nested levels")
    return Reschedule(execute_at, msgspec.Raw(payload))


def _is_utf8(text: bytes) -> bool:
    """Whether the text is UTF-8. The decoder does not check values that it returns raw."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def retry_after_at(text: str | None, now_us: int, retry_after_us_max: int) -> int | None:
    """The instant that a Retry-After header asks for (RFC 9110 section 10.2.3), at most `retry_after_us_max` from now; None
    if it is absent or unreadable."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        delay_us = int(text[:12]) * US_PER_SECOND
    else:
        try:
            moment = parsedate_to_datetime(text)
            if moment.tzinfo is None:
                # "-0000" is UTC from a machine that does not state its own zone (RFC 5322 section 3.3).
                moment = moment.replace(tzinfo=UTC)
            delay_us = int(moment.timestamp()) * US_PER_SECOND - now_us
        except (ValueError, OverflowError, TypeError, IndexError):
            return None
    return now_us + max(0, min(delay_us, retry_after_us_max))
