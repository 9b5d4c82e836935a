"""The callback protocol, row by row of its table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.answer import Done, Failed, NoResponse, Outcome, Reschedule, Response, Verdict, judge
from tocsin.model.instants import US_PER_SECOND, format_instant

NOW = 1_800_000_000 * US_PER_SECOND
LATEST = NOW + 10**15
HOUR = 3_600 * US_PER_SECOND
TOMORROW = NOW + 24 * HOUR


def verdict(outcome: Outcome, *, strict: bool = False) -> Verdict:
    return judge(
        outcome,
        now_us=NOW,
        retry_after_us_max=HOUR,
        instant_us_max=LATEST,
        payload_bytes_max=1_000,
        payload_depth_max=100,
        strict=strict,
    )


def answer(body: Any, status: int = 200, *, strict: bool = False) -> Verdict:
    return verdict(Response(status, body if isinstance(body, bytes) else json.dumps(body).encode()), strict=strict)


def rescheduled(result: Verdict) -> tuple[int, bytes | None]:
    assert isinstance(result, Reschedule)
    return result.execute_at, None if result.payload is None else bytes(result.payload)


@each("status", [200, 201, 202, 204, 299])
@each("body", [b"", b" \r\n", b'{"ok":true}', b'{"ok": true}', b' { "ok" : true , "note" : [1] } '])
@each("strict", [False, True])
def test_2xx_is_done(status: int, body: bytes, strict: bool) -> None:
    assert answer(body, status, strict=strict) == Done()


def test_next_execute_at_null_means_none() -> None:
    assert (
        answer({"ok": True, "nextExecuteAt": None})
        == answer({"ok": True, "nextExecuteAt": None}, strict=True)
        == Done()
    )
    assert isinstance(answer({"ok": False, "nextExecuteAt": None}), Failed)


@each("strict", [False, True])
@each("body", [b'{"ok":false}', b' {"ok" :\nfalse, "more": ["\xc3\xa9"] }\r\n', b'{"o\\u006b":false}'])
def test_ok_false_is_retried(body: bytes, strict: bool) -> None:
    result = answer(body, strict=strict)
    assert isinstance(result, Failed)
    assert not result.final
    assert result.error.startswith("CALLBACK_NOT_OK")


@each("ok", [{}, {"ok": True}, {"ok": False}])
def test_next_execute_at_reschedules(ok: dict[str, Any]) -> None:
    wanted = {**ok, "nextExecuteAt": format_instant(TOMORROW)}
    assert rescheduled(answer(wanted)) == (TOMORROW, None)
    assert rescheduled(answer({**wanted, "payload": {"step": 2}})) == (TOMORROW, b'{"step": 2}')
    assert rescheduled(answer({**wanted, "payload": None})) == (TOMORROW, b"null")


def test_reschedule_into_the_past_is_due_at_once() -> None:
    assert rescheduled(answer({"nextExecuteAt": format_instant(NOW - HOUR)})) == (NOW - HOUR, None)


def test_rescheduled_payload_has_the_depth_limit_of_a_created_one() -> None:
    def nested(levels: int) -> bytes:
        return b'{"nextExecuteAt":"2030-01-01T00:00:00Z","payload":' + b"[" * levels + b"]" * levels + b"}"

    assert isinstance(answer(nested(100)), Reschedule)
    result = answer(nested(101))
    assert result == Failed("INVALID_CALLBACK_RESPONSE: payload has more than 100 nested levels")


def test_rescheduled_payload_does_not_keep_the_whole_response_in_memory() -> None:
    body = b'{"nextExecuteAt":"2030-01-01T00:00:00Z","payload":7,"ballast":"' + b"x" * 60_000 + b'"}'
    result = answer(body)
    assert isinstance(result, Reschedule)
    assert result.payload is not None
    assert memoryview(result.payload).obj is not body


#: Bodies that ask for nothing: a namespace's strict mode refuses them.
NOTHING_ASKED = [
    b"OK",
    b"null",
    b"[]",
    b"true",
    b"{}",
    b"<html></html>",
    b'{"ok": true',
    b'{"ok": "true"}',
    b'{"ok": 1}',
    b'{"ok": null}',
    b'{"ok": 0}',
    b'{"ok": "false"}',
    b'{"ok": {"ok": false}}',
    b'[{"ok": false}]',
    b'"ok: false"',
    b'{"status": "done"}',
    b'{"ok": false',
    b'{"ok": false} x',
    b'{"OK": false}',
    b'\xef\xbb\xbf{"ok": false}',
    b'\xff{"ok": true}',
    b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b'{"ok": true, "deep": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
]
#: Bodies that ask for an invalid reschedule.
WISHES_REFUSED = [
    b'{"nextExecuteAt": 5}',
    b'{"nextExecuteAt": ""}',
    b'{"nextExecuteAt": {"at": "2030-01-01T00:00:00Z"}}',
    b'{"ok": true, "nextExecuteAt": "tomorrow"}',
    b'{"nextExecuteAt": "2027-01-31T12:00:00"}',
    b'{"nextExecuteAt": "1969-01-01T00:00:00Z"}',
    b'{"nextExecuteAt": "9000-01-01T00:00:00Z"}',
    b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": "' + b"x" * 1_000 + b'"}',
    b'{"ok": "yes", "nextExecuteAt": "tomorrow"}',
]


def is_invalid(result: Verdict) -> bool:
    return (
        isinstance(result, Failed)
        and result.error.startswith("INVALID_CALLBACK_RESPONSE")
        and (result.final, result.not_before_us) == (False, None)
    )


@each("body", NOTHING_ASKED)
def test_other_bodies_are_done_or_in_strict_mode_invalid_and_retried(body: bytes) -> None:
    assert answer(body) == Done()
    assert is_invalid(answer(body, strict=True))


@each("body", WISHES_REFUSED)
def test_invalid_reschedule_is_retried(body: bytes) -> None:
    assert is_invalid(answer(body))
    assert is_invalid(answer(body, strict=True))


def test_body_that_is_not_utf_8_is_not_json() -> None:
    for text in (b'{"ok": false, "why": "\xe9"}', b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": "\xff"}'):
        assert answer(text) == Done()
    assert is_invalid(answer(b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": "\xff"}', strict=True))


def test_truncated_body_is_ignored_and_invalid_in_strict_mode() -> None:
    for body in (b"", b'{"ok": true}', b'{"ok": false}', b'{"nextExecuteAt": "2030-01-01T00:00:00Z"}'):
        assert verdict(Response(200, body, truncated=True)) == Done()
        assert is_invalid(verdict(Response(200, body, truncated=True), strict=True))


@each("status", [101, 300, 301, 302, 304, 307, 308, 408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_retried_statuses(status: int) -> None:
    assert answer(b'{"ok": true}', status) == Failed(f"HTTP_{status}")


@each("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 418, 422, 451, 499])
def test_final_statuses(status: int) -> None:
    assert verdict(Response(status, b'{"ok": true}', retry_after="5")) == Failed(f"HTTP_{status}", final=True)


@each(
    "outcome, failed",
    [
        (NoResponse("TIMEOUT"), Failed("TIMEOUT")),
        (NoResponse("CONNECTION_FAILED", "refused"), Failed("CONNECTION_FAILED: refused")),
        (NoResponse("EGRESS_REFUSED", "private", final=True), Failed("EGRESS_REFUSED: private", final=True)),
    ],
)
def test_no_response_is_retried_unless_final(outcome: NoResponse, failed: Failed) -> None:
    assert verdict(outcome) == failed


def http_date(instant_us: int) -> str:
    return format_datetime(datetime.fromtimestamp(instant_us / US_PER_SECOND, UTC), usegmt=True)


@each("status", [301, 408, 425, 429, 500, 503])
@each(
    "text, not_before",
    [
        ("0", NOW),
        ("120", NOW + 120 * US_PER_SECOND),
        (" 120 ", NOW + 120 * US_PER_SECOND),
        ("99999999999999999999999999", NOW + HOUR),
        (http_date(NOW + 60 * US_PER_SECOND), NOW + 60 * US_PER_SECOND),
        (http_date(NOW + 60 * US_PER_SECOND).replace("GMT", "-0000"), NOW + 60 * US_PER_SECOND),
        (http_date(NOW - HOUR), NOW),
        (http_date(NOW + 5 * HOUR), NOW + HOUR),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("Mon, 01 Jan 99999999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2030 00:00:00 +99999999999999999999999", None),
        (None, None),
    ],
)
def test_retry_after(status: int, text: str | None, not_before: int | None) -> None:
    assert verdict(Response(status, b"", retry_after=text)) == Failed(f"HTTP_{status}", not_before_us=not_before)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
INSTANTS = st.sampled_from(["2030-01-01T00:00:00Z", "2030-01-01T00:00:00", "9000-01-01T00:00:00Z"])
BODIES = st.dictionaries(
    st.sampled_from(["ok", "nextExecuteAt", "payload", "x"]), st.just(False) | INSTANTS | VALUES
).map(msgspec.json.encode)


def damaged(body: bytes, at: int, byte: int) -> bytes:
    return body[: at % (len(body) + 1)] + bytes([byte]) + body[at % (len(body) + 1) + 1 :]


HOSTILE = (
    st.binary(max_size=200)
    | VALUES.map(msgspec.json.encode)
    | BODIES
    | st.builds(damaged, BODIES, st.integers(0, 500), st.integers(0, 255))
)


@example(200, b'{"ok":"","nextExecuteAt":"2030-01-01T00:00:00Z"}', None, False, True)
@given(st.integers(100, 999), HOSTILE, st.none() | st.text(max_size=60), st.booleans(), st.booleans())
def test_every_response_has_a_verdict(
    status: int, body: bytes, retry_after: str | None, truncated: bool, strict: bool
) -> None:
    result = verdict(Response(status, body, retry_after, truncated), strict=strict)
    if isinstance(result, Failed) and result.not_before_us is not None:
        assert NOW <= result.not_before_us <= NOW + HOUR
    if 200 <= status < 300:
        assert kind(result) == as_in_the_table(body, truncated, strict)
    else:
        assert not isinstance(result, Done)


def kind(result: Verdict) -> str:
    if isinstance(result, Failed):
        return result.error.partition(":")[0]
    return type(result).__name__


def as_in_the_table(body: bytes, truncated: bool, strict: bool) -> str:
    """The expected verdict, by a decoder that decodes the whole body."""
    nothing_asked = "INVALID_CALLBACK_RESPONSE" if strict else "Done"
    if truncated:
        return nothing_asked
    if not body.strip(b" \t\r\n"):
        return "Done"
    try:
        body.decode()
        value = msgspec.json.decode(body)
    except (ValueError, msgspec.DecodeError):
        return nothing_asked
    if not isinstance(value, dict):
        return nothing_asked
    if strict and not isinstance(value.get("ok", True), bool):
        return "INVALID_CALLBACK_RESPONSE"
    if (wanted := value.get("nextExecuteAt")) is not None:
        return "Reschedule" if wanted == "2030-01-01T00:00:00Z" else "INVALID_CALLBACK_RESPONSE"
    if value.get("ok") is False:
        return "CALLBACK_NOT_OK"
    return "Done" if value.get("ok") is True else nothing_asked
