"""Test vectors: what every SDK computes itself, as the server's own model computes it. `sdks/README.md` describes the files.

`placement.json` is not made here: stored timers depend on it, so it must never follow a change of the model.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from tocsin.http_client.signing import signatures
from tocsin.model.instants import format_duration, format_instant, parse_duration, parse_instant
from tocsin.web.http.codes import CODES

from .document import Api

Json = dict[str, Any]

_NEW = "whsec_" + base64.b64encode(bytes(range(24))).decode()
_OLD = "whsec_" + base64.b64encode(bytes(range(100, 164))).decode()
_OTHER = "whsec_" + base64.b64encode(bytes(range(200, 232))).decode()
_NOW_S = 1_790_000_000
_BODY = '{"namespace":"default","timerId":"größe-17","payload":{"n":1}}'
_ID = "0f6d3c1e-7a52-4c0e-9a57-1f0f5d2f6b11.1-2"
_TOLERANCE_S = 300

_INSTANTS = (
    *("2027-01-31T12:00:00Z", "2027-01-31T12:00:00.5Z", "2027-01-31T12:00:00.123456Z", "2027-01-31t12:00:00z"),
    *("2027-01-31T12:00:00.1234560Z", "2027-01-31T12:00:00.1234561Z", "2027-01-31T14:00:00+02:00"),
    *("2026-12-31T23:30:00-01:30", "1969-12-31T23:59:59.999999Z", "2024-02-29T00:00:00Z"),
)
_NO_INSTANTS = (
    *("", "2027-01-31", "2027-01-31T12:00:00", "2027-02-29T00:00:00Z", "2027-01-31T24:00:00Z", "2027-01-31 12:00:00Z"),
    *("2027-01-31T12:00:60Z", "2027-01-31T12:00:00+24:00", "1798718400", "2027-13-01T00:00:00Z"),
)
_DURATIONS = ("0s", "1us", "500ms", "30s", "5m", "1h30m", "24h", "7d", "1.5s", "0.0000001s", "1h1h", "90m", "36500d")
_NO_DURATIONS = ("", "30", "s", "-5s", "5 m", "5M", "1h 30m", "PT5M", "1.s", ".5s")
_MICROSECONDS = (0, 1, 1_000, 1_500_000, 5_400_000_000, 86_400_000_000, 90_061_001_001)


def files(api: Api) -> dict[str, str]:
    """The files of vectors: their contents by path below `sdks/`."""
    made = {
        "signatures": (
            "Whether a receiver accepts a request. `unsigned`: there are no signature headers; `wrong`: no signature fits; "
            "`stale`: the timestamp is further from now than the tolerance.",
            _signatures(),
        ),
        "signing": ("The signatures of a message, one for each secret.", _signing()),
        "instants": ("RFC 3339 texts and their canonical form. Digits finer than a microsecond round up.", _instants()),
        "durations": ("Texts of durations; and durations as the shortest text.", _durations()),
        "answers": ("What a receiver sends for an answer of its handler.", _ANSWERS),
        "errors": ("The error that an answer of the server becomes.", _errors(api)),
        "retries": (
            "The pause before the next try: random * min(5, 0.1 * 2^attempt) seconds, or after a Retry-After of r seconds "
            "r * (1 + random / 2). An error: there is no next try, because the shortest pause would exceed the time left.",
            _retries(),
        ),
    }
    return {
        f"vectors/{name}.json": json.dumps({"about": about, "cases": cases}, indent=2, ensure_ascii=False) + "\n"
        for name, (about, cases) in made.items()
    }


def _case(name: str, given: Json, expected: Json) -> Json:
    return {"name": name, "with": given, "expect": expected}


def _signed(*secrets: str, at_s: int = _NOW_S, body: str = _BODY) -> dict[str, str]:
    return {
        "webhook-id": _ID,
        "webhook-timestamp": str(at_s),
        "webhook-signature": signatures(secrets, _ID, at_s, body.encode()),
    }


def _signatures() -> list[Json]:
    def case(name: str, headers: Json, result: str = "", secrets: tuple[str, ...] = (_NEW, _OLD)) -> Json:
        given = {
            "secrets": list(secrets), "toleranceSeconds": _TOLERANCE_S, "now": format_instant(_NOW_S * 1_000_000),
            "headers": headers, "body": _BODY,
        }  # fmt: skip
        return _case(name, given, {"error": result} if result else {"valid": True})

    good = _signed(_NEW)
    tampered = {**good, "webhook-signature": _signed(_NEW, body=_BODY.replace("1", "2"))["webhook-signature"]}
    without = {name: value for name, value in good.items() if name != "webhook-signature"}
    return [
        case("signed with the newer secret", good),
        case("signed with the older secret", _signed(_OLD)),
        case("signed with an unknown secret and a known one", _signed(_OTHER, _OLD)),
        case("signed by another scheme beside", {**good, "webhook-signature": "v2,AAAA " + good["webhook-signature"]}),
        case("at the end of the tolerance", _signed(_NEW, at_s=_NOW_S - _TOLERANCE_S)),
        case("at the end of the tolerance, from a clock that is ahead", _signed(_NEW, at_s=_NOW_S + _TOLERANCE_S)),
        case("too old", _signed(_NEW, at_s=_NOW_S - _TOLERANCE_S - 1), "stale"),
        case("too new", _signed(_NEW, at_s=_NOW_S + _TOLERANCE_S + 1), "stale"),
        case("another body", tampered, "wrong"),
        case("another id", {**good, "webhook-id": _ID + "x"}, "wrong"),
        case("an unknown secret", _signed(_OTHER), "wrong"),
        case("not base64", {**good, "webhook-signature": "v1,%%%"}, "wrong"),
        case("an empty signature", {**good, "webhook-signature": ""}, "wrong"),
        case("a timestamp that is no number", {**good, "webhook-timestamp": "soon"}, "wrong"),
        case("no signature", without, "unsigned"),
        case("no headers", {}, "unsigned"),
    ]


def _signing() -> list[Json]:
    given = {"webhookId": _ID, "timestamp": _NOW_S, "body": _BODY}
    return [
        _case(
            f"{len(secrets)} secrets",
            {"secrets": list(secrets), **given},
            {"signature": _signed(*secrets)["webhook-signature"]},
        )
        for secrets in ((_NEW,), (_NEW, _OLD))
    ]


def _instants() -> list[Json]:
    good = [_case(text, {"text": text}, {"text": format_instant(parse_instant(text))}) for text in _INSTANTS]
    return good + [_case(f"refused: {text!r}", {"text": text}, {"error": "instant"}) for text in _NO_INSTANTS]


def _durations() -> list[Json]:
    read = [_case(text, {"text": text}, {"microseconds": parse_duration(text)}) for text in _DURATIONS]
    bad = [_case(f"refused: {text!r}", {"text": text}, {"error": "duration"}) for text in _NO_DURATIONS]
    return read + bad + [_case(f"{us} us", {"microseconds": us}, {"text": format_duration(us)}) for us in _MICROSECONDS]


_AT = "2027-01-31T12:00:00.5Z"
_AT_WRITTEN = "2027-01-31T12:00:00.500000Z"
_ANSWERS = [
    _case("done", {"answer": {"done": {}}}, {"status": 200, "body": {"ok": True}}),
    _case(
        "rescheduled",
        {"answer": {"rescheduleAt": {"at": _AT}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN}},
    ),
    _case(
        "rescheduled with another payload",
        {"answer": {"rescheduleAt": {"at": _AT, "payload": {"n": 2}}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN, "payload": {"n": 2}}},
    ),
    _case(
        "rescheduled with null as payload",
        {"answer": {"rescheduleAt": {"at": _AT, "payload": None}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN, "payload": None}},
    ),
    _case("retry", {"answer": {"retry": {}}}, {"status": 503, "headers": {}}),
    _case("retry later", {"answer": {"retry": {"after": 30}}}, {"status": 503, "headers": {"retry-after": "30"}}),
    _case(
        "retry after a fraction",
        {"answer": {"retry": {"after": 0.2}}},
        {"status": 503, "headers": {"retry-after": "1"}},
    ),
    _case("failed", {"answer": {"fail": {"reason": "no such order"}}}, {"status": 422}),
    _case("raised", {"answer": {"raise": "a defect"}}, {"status": 500}),
]


def _errors(api: Api) -> list[Json]:
    cases = []
    for error in api.errors:
        status, example = error.status, CODES[error.code].example
        fields = [{"path": "delay", "reason": "is not a duration"}] if error.code == "INVALID_INPUT" else []
        body = {
            "type": f"urn:tocsin:error:{error.code}", "title": "", "status": status, "detail": example, "instance": "/x",
            "error": error.code, "message": example, "timestamp": _AT, "correlationId": "c-17", "errors": fields,
        }  # fmt: skip
        classes = [error.name] if error.name != error.group else []
        expected: Json = {
            "classes": [*classes, error.group, "ApiError", "TocsinError"], "status": status, "code": error.code,
            "message": example, "correlationId": "c-17", "fields": fields,
        }  # fmt: skip
        headers = {"content-type": "application/problem+json"}
        if status in (429, 503):
            headers["retry-after"], expected["retryAfter"] = "3", 3
        cases.append(_case(error.code, {"status": status, "headers": headers, "body": body}, expected))
    unknown = {"error": "NEW_CODE", "message": "later", "status": 409, "errors": []}
    cases.append(
        _case(
            "an unknown code",
            {"status": 409, "headers": {"content-type": "application/problem+json"}, "body": unknown},
            {"classes": ["Conflict", "ApiError", "TocsinError"], "status": 409, "code": "NEW_CODE"},
        )
    )
    for status, group in ((404, "NotFound"), (418, "InvalidInput"), (502, "Unavailable"), (500, "ServerError")):
        cases.append(
            _case(
                f"{status} of a proxy",
                {"status": status, "headers": {"content-type": "text/html"}, "body": "<html>"},
                {"classes": [group, "ApiError", "TocsinError"], "status": status},
            )
        )
    return cases


def _retries() -> list[Json]:
    def case(expected: float | None, **given: float) -> Json:
        name = ", ".join(f"{key} {value:g}" for key, value in given.items())
        return _case(name, given, {"error": "give up"} if expected is None else {"delaySeconds": expected})

    cases = [
        case(random * min(5.0, 0.1 * 2**attempt), attempt=attempt, random=random, leftSeconds=30)
        for attempt in (0, 1, 2, 5, 6, 20)
        for random in (0.0, 0.5, 1.0)
    ]
    return [
        *cases,
        case(2.0, attempt=0, random=0.0, retryAfter=2, leftSeconds=30),
        case(3.0, attempt=0, random=1.0, retryAfter=2, leftSeconds=30),
        case(None, attempt=0, random=0.0, retryAfter=60, leftSeconds=30),
        case(None, attempt=0, random=0.5, leftSeconds=0),
    ]
