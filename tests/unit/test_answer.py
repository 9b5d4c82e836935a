"""The answer protocol, row by row of its table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.answer import Done, Failed, NoResponse, Outcome, Reschedule, Response, Verdict, judge
from tocsin.model.instants import US_PER_SECOND, format_instant

NOW = 1_800_000_000 * US_PER_SECOND
LATEST = NOW + 10**15
HOUR = 3_600 * US_PER_SECOND
TOMORROW = NOW + 24 * HOUR


def verdict(outcome: Outcome) -> Verdict:
    return judge(
        outcome,
        now_us=NOW,
        retry_after_us_max=HOUR,
        instant_us_max=LATEST,
        payload_bytes_max=1_000,
        payload_depth_max=100,
    )


def answer(body: Any, status: int = 200) -> Verdict:
    return verdict(Response(status, body if isinstance(body, bytes) else json.dumps(body).encode()))


def rescheduled(result: Verdict) -> tuple[int, bytes | None]:
    assert isinstance(result, Reschedule)
    return result.execute_at, None if result.payload is None else bytes(result.payload)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
@pytest.mark.parametrize("body", [b"", b" \r\n", b'{"ok":true}', b'{"ok": true}', b' { "ok" : true , "note" : [1] } '])
def test_done(status: int, body: bytes) -> None:
    assert answer(body, status) == Done()


def test_null_as_the_next_instant_is_none_at_all() -> None:
    assert answer({"ok": True, "nextExecuteAt": None}) == Done()


def test_not_ok_is_retried() -> None:
    result = answer({"ok": False})
    assert isinstance(result, Failed)
    assert not result.final
    assert result.error.startswith("CALLBACK_NOT_OK")


@pytest.mark.parametrize("ok", [{}, {"ok": True}, {"ok": False}])
def test_rescheduled(ok: dict[str, Any]) -> None:
    wanted = {**ok, "nextExecuteAt": format_instant(TOMORROW)}
    assert rescheduled(answer(wanted)) == (TOMORROW, None)
    assert rescheduled(answer({**wanted, "payload": {"step": 2}})) == (TOMORROW, b'{"step": 2}')
    assert rescheduled(answer({**wanted, "payload": None})) == (TOMORROW, b"null")


def test_rescheduled_into_the_past_is_due_at_once() -> None:
    assert rescheduled(answer({"nextExecuteAt": format_instant(NOW - HOUR)})) == (NOW - HOUR, None)


def test_a_rescheduled_payload_is_no_deeper_than_a_created_one() -> None:
    def nested(levels: int) -> bytes:
        return b'{"nextExecuteAt":"2030-01-01T00:00:00Z","payload":' + b"[" * levels + b"]" * levels + b"}"

    assert isinstance(answer(nested(100)), Reschedule)
    result = answer(nested(101))
    assert result == Failed("INVALID_CALLBACK_RESPONSE: payload has more than 100 levels")


def test_the_rescheduled_payload_doesn_t_keep_the_whole_answer() -> None:
    body = b'{"nextExecuteAt":"2030-01-01T00:00:00Z","payload":7,"ballast":"' + b"x" * 60_000 + b'"}'
    result = answer(body)
    assert isinstance(result, Reschedule)
    assert result.payload is not None
    assert memoryview(result.payload).obj is not body


@pytest.mark.parametrize(
    "body",
    [
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
        b'{"status": "done"}',
        b'{"nextExecuteAt": 5}',
        b'{"ok": true, "nextExecuteAt": "tomorrow"}',
        b'{"nextExecuteAt": "2027-01-31T12:00:00"}',
        b'{"nextExecuteAt": "1969-01-01T00:00:00Z"}',
        b'{"nextExecuteAt": "9000-01-01T00:00:00Z"}',
        b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": "' + b"x" * 1_000 + b'"}',
        b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": "\xff"}',
        b'{"nextExecuteAt": "2030-01-01T00:00:00Z", "payload": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"ok": true, "deep": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'\xff{"ok": true}',
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_any_other_body_is_an_invalid_answer_and_retried(body: bytes) -> None:
    result = answer(body)
    assert isinstance(result, Failed)
    assert result.error.startswith("INVALID_CALLBACK_RESPONSE")
    assert (result.final, result.not_before_us) == (False, None)


def test_a_cut_answer_is_invalid_even_if_what_is_left_says_done() -> None:
    for body in (b"", b'{"ok": true}', b'{"ok": true}  '):
        result = verdict(Response(200, body, truncated=True))
        assert isinstance(result, Failed)
        assert not result.final


@pytest.mark.parametrize("status", [101, 300, 301, 302, 304, 307, 308, 408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_retried_statuses(status: int) -> None:
    assert answer(b'{"ok": true}', status) == Failed(f"HTTP_{status}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 418, 422, 451, 499])
def test_final_statuses(status: int) -> None:
    assert verdict(Response(status, b'{"ok": true}', retry_after="5")) == Failed(f"HTTP_{status}", final=True)


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        (NoResponse("TIMEOUT"), Failed("TIMEOUT")),
        (NoResponse("CONNECTION_FAILED", "refused"), Failed("CONNECTION_FAILED: refused")),
        (NoResponse("EGRESS_REFUSED", "private", final=True), Failed("EGRESS_REFUSED: private", final=True)),
    ],
)
def test_no_answer_at_all(outcome: NoResponse, failed: Failed) -> None:
    assert verdict(outcome) == failed


def http_date(instant_us: int) -> str:
    return format_datetime(datetime.fromtimestamp(instant_us / US_PER_SECOND, UTC), usegmt=True)


@pytest.mark.parametrize("status", [301, 408, 425, 429, 500, 503])
@pytest.mark.parametrize(
    ("text", "not_before"),
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


@given(st.integers(100, 999), st.binary(max_size=200), st.none() | st.text(max_size=60), st.booleans())
def test_every_answer_has_a_verdict(status: int, body: bytes, retry_after: str | None, truncated: bool) -> None:
    result = verdict(Response(status, body, retry_after, truncated))
    if isinstance(result, Failed) and result.not_before_us is not None:
        assert NOW <= result.not_before_us <= NOW + HOUR


PARTS = st.dictionaries(
    st.sampled_from(["ok", "nextExecuteAt", "payload", "x"]),
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.just("2030-01-01T00:00:00Z"),
)


@given(PARTS)
def test_done_needs_ok_or_nothing_else(parts: dict[str, Any]) -> None:
    result = verdict(Response(200, msgspec.json.encode(parts)))
    assert (result == Done()) == (parts.get("ok") is True and parts.get("nextExecuteAt") is None)
