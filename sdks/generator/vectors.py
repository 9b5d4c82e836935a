"""Test vectors: what every SDK computes itself, as the server's own model computes it. `sdks/README.md` describes the files.

`placement.json` is not made here: stored timers depend on it, so it must never follow a change of the model.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import uuid
from typing import Any

from tocsin.http_client.signing import signatures
from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.instants import format_duration, format_instant, parse_duration, parse_instant
from tocsin.web.http.codes import CODES

from .document import Api

Json = dict[str, Any]

_NEW = "whsec_" + base64.b64encode(bytes(range(24))).decode()
_OLD = "whsec_" + base64.b64encode(bytes(range(100, 164))).decode()
_OTHER = "whsec_" + base64.b64encode(bytes(range(200, 232))).decode()
_NOW_S = 1_790_000_000
_NAMESPACE, _TIMER_ID = "default", "größe/17"
_ENVELOPE: Json = {
    "namespace": _NAMESPACE, "timerId": _TIMER_ID, "executeAt": "2026-09-21T14:13:20Z",
    "firedAt": "2026-09-21T14:13:20.250000Z", "attempt": 2, "payload": {"n": 1},
}  # fmt: skip
_BODY = json.dumps(_ENVELOPE, ensure_ascii=False, separators=(",", ":"))
_ID = f"msg_{timer_uuid(_NAMESPACE, _TIMER_ID).hex()}_1-2"
_TOLERANCE_S = 300
#: A receiver compares so many signatures of a request, and refuses one with more.
_SIGNATURES_MAX = 10

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
            "Whether a receiver accepts a request. `unsigned`: there are no signature headers; `wrong`: no signature fits, "
            "the timestamp is not 1 to 12 ASCII digits, or there are more than 10 signatures; `stale`: the timestamp is "
            "further from now than the tolerance. Signatures are separated by single spaces: between two in a row is an "
            "empty one.",
            _signatures(),
        ),
        "signing": ("The signatures of a message, one for each secret.", _signing()),
        "firings": (
            "What a receiver reads of a request whose signature is valid or not checked. An error: the request is refused as "
            "if its signature was wrong. `body` is text in UTF-8. Of `expect`, null is what a firing does not have.",
            _firings(),
        ),
        "instants": ("RFC 3339 texts and their canonical form. Digits finer than a microsecond round up.", _instants()),
        "durations": ("Texts of durations; and durations as the shortest text.", _durations()),
        "answers": ("What a receiver sends for an answer of its handler.", _ANSWERS),
        "errors": ("The error that an answer of the server becomes.", _errors(api)),
        "retries": (
            "The pause before the next try: random * min(2, 0.1 * 2^attempt) seconds, or after a Retry-After of r seconds "
            "r * (1 + random / 2). An error: there is no next try, because the pause is not shorter than the time left.",
            _retries(),
        ),
        "budget": (
            "What is left of a new client's budget after each event. `retries`: so many retries are asked for, after tries "
            "that may have been executed; `allowed` of them take place. `successes`: so many calls succeed, each after "
            "`paid` retries that were allowed. `left` is rounded to tenths.",
            _budget(),
        ),
        "tries": ("The debug line of a try. Absent members are absent.", _tries()),
        "keys": ("An API key as the client sends it. No message contains the key.", _keys()),
        "urls": ("A client's URL as paths are appended to it. No message contains a password.", _urls()),
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


def _signed_as(timestamp: str) -> dict[str, str]:
    """A request that is signed for the timestamp as it is written, and for the number that it may be taken for."""
    given = [
        hmac.digest(bytes(range(24)), f"{_ID}.{text}.{_BODY}".encode(), "sha256") for text in (timestamp, str(_NOW_S))
    ]
    signature = " ".join("v1," + binascii.b2a_base64(each, newline=False).decode() for each in given)
    return {"webhook-id": _ID, "webhook-timestamp": timestamp, "webhook-signature": signature}


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
        case("a timestamp of 12 digits", _signed_as(f"{_NOW_S:012}")),
        case("a timestamp of 13 digits", _signed_as(f"{_NOW_S:013}"), "wrong"),
        case("a timestamp of 12 digits, far ahead", _signed(_NEW, at_s=10**12 - 1), "stale"),
        case("a timestamp with a sign", _signed_as(f"+{_NOW_S}"), "wrong"),
        case("a timestamp after a space", _signed_as(f" {_NOW_S}"), "wrong"),
        case("a timestamp with a fraction", _signed_as(f"{_NOW_S}.0"), "wrong"),
        case("an empty timestamp", _signed_as(""), "wrong"),
        case("a timestamp in other digits", _signed_as("".join(chr(0x660 + int(d)) for d in str(_NOW_S))), "wrong"),
        case(
            "as many signatures as are compared", {**good, "webhook-signature": _after(_SIGNATURES_MAX - 1, "v1,AAAA")}
        ),
        case("one signature more", {**good, "webhook-signature": _after(_SIGNATURES_MAX, "v1,AAAA")}, "wrong"),
        case(
            "one signature of another scheme more",
            {**good, "webhook-signature": _after(_SIGNATURES_MAX, "v2,A")},
            "wrong",
        ),
        case("empty signatures beside", {**good, "webhook-signature": _after(2, "")}),
        case("too many empty signatures beside", {**good, "webhook-signature": _after(_SIGNATURES_MAX, "")}, "wrong"),
        case("no signature", without, "unsigned"),
        case("no headers", {}, "unsigned"),
    ]


def _after(number: int, signature: str) -> str:
    """The right signature after others."""
    return " ".join([signature] * number + [_signed(_NEW)["webhook-signature"]])


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
        case(random * min(2.0, 0.1 * 2 ** min(attempt, 9)), attempt=attempt, random=random, leftSeconds=30)
        for attempt in (0, 1, 2, 4, 5, 20, 2_000)
        for random in (0.0, 0.5, 1.0)
    ]
    return [
        *cases,
        case(2.0, attempt=0, random=0.0, retryAfter=2, leftSeconds=30),
        case(3.0, attempt=0, random=1.0, retryAfter=2, leftSeconds=30),
        case(None, attempt=0, random=0.0, retryAfter=60, leftSeconds=30),
        case(None, attempt=0, random=0.5, leftSeconds=0),
        case(None, attempt=0, random=0.5, leftSeconds=-1),
        case(None, attempt=5, random=1.0, leftSeconds=2),
        case(2.0, attempt=5, random=1.0, leftSeconds=2.1),
    ]


def _firings() -> list[Json]:
    sent_at = format_instant(_NOW_S * 1_000_000)
    hex_id = timer_uuid(_NAMESPACE, _TIMER_ID).hex()
    schedule_id = f"msg_{schedule_uuid(_NAMESPACE, _TIMER_ID).hex()}_s-{_NOW_S}000000"
    read = {"webhookId": _ID, **_ENVELOPE}
    named = {"tocsin-namespace": _NAMESPACE, "tocsin-timer-id": "gr%C3%B6%C3%9Fe%2F17"}
    instants = {
        "tocsin-execute-at": "2000-01-01T00:00:00Z",
        "tocsin-fired-at": "2000-01-01T00:00:00Z",
        "tocsin-attempt": "7",
    }
    foreign = {"tocsin-namespace": "orders", "tocsin-timer-id": "other", **instants}
    raw = {
        "webhookId": _ID, "namespace": _NAMESPACE, "timerId": _TIMER_ID, "executeAt": sent_at, "firedAt": sent_at,
        "attempt": 0, "payload": None,
    }  # fmt: skip
    nameless = {**raw, "namespace": "", "timerId": ""}
    other = {**_ENVELOPE, "timerId": "other"}

    def case(
        name: str, body: Any, headers: Json, expected: Json | None, webhook_id: str = _ID, method: str = "POST"
    ) -> Json:
        given = {
            "method": method, "headers": {"webhook-id": webhook_id, "webhook-timestamp": str(_NOW_S), **headers},
            "body": body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
        }  # fmt: skip
        return _case(name, given, {"error": "refused"} if expected is None else {**expected, "webhookId": webhook_id})

    def without(member: str) -> Json:
        return {name: value for name, value in _ENVELOPE.items() if name != member}

    envelopes = [
        case("an envelope", _ENVELOPE, {}, read),
        case("an envelope with null as payload", {**_ENVELOPE, "payload": None}, {}, {**read, "payload": None}),
        case("an envelope with a member of a later release", {**_ENVELOPE, "later": 1}, {}, read),
        case("an envelope beside headers of another timer", _ENVELOPE, foreign, read),
        case("an envelope beside its own headers", _ENVELOPE, {**named, **instants}, read),
        case("an envelope of a schedule", _ENVELOPE, {}, read, schedule_id),
        case("an envelope of another timer", other, {}, None),
        case("an envelope of another namespace", {**_ENVELOPE, "namespace": "orders"}, {}, None),
        case(
            "an envelope of another timer, beside headers of that timer",
            other,
            {**foreign, "tocsin-namespace": _NAMESPACE},
            None,
        ),
        case("no envelope: no attempt", without("attempt"), {}, None),
        case("no envelope: no payload", without("payload"), {}, None),
        case("no envelope: a list", [_ENVELOPE], {}, None),
        case("no envelope: the id is a number", {**_ENVELOPE, "timerId": 17}, {}, None),
        case("no envelope: an instant is none", {**_ENVELOPE, "executeAt": "soon"}, {}, None),
    ]
    raws = [
        case("a raw body", "<note/>", {**named, **instants}, raw),
        case("a raw body without the headers that prove nothing", "<note/>", named, raw),
        case(
            "a raw body whose other headers are altered",
            "<note/>",
            {**named, "tocsin-attempt": "x", "tocsin-fired-at": "x"},
            raw,
        ),
        case("an empty raw body", "", {**named, **instants}, raw),
        case("a raw body of a schedule", "<note/>", named, raw, schedule_id),
        case("a raw body that imitates an envelope of another timer", other, named, raw),
        case("a raw body that lacks a member of an envelope", without("firedAt"), named, raw),
        case("a raw body that is a number", "17", named, raw),
        case(
            "a raw body, the id not percent-encoded where it need not be",
            "x",
            {**named, "tocsin-timer-id": "gr%c3%b6%c3%9fe/17"},
            raw,
        ),
        case("another namespace in the header", "<note/>", {**named, "tocsin-namespace": "orders"}, None),
        case("another id in the header", "<note/>", {**named, "tocsin-timer-id": "other"}, None),
        case(
            "namespace and id shifted",
            "<note/>",
            {"tocsin-namespace": "defaul", "tocsin-timer-id": "t" + named["tocsin-timer-id"]},
            None,
        ),
        case("an id that is not UTF-8", "<note/>", {**named, "tocsin-timer-id": "gr%FF"}, None),
        case("a raw body without headers", "<note/>", {}, None),
        case(
            "a raw body without the namespace's header", "<note/>", {"tocsin-timer-id": named["tocsin-timer-id"]}, None
        ),
        case("a raw body without the id's header", "<note/>", {"tocsin-namespace": _NAMESPACE}, None),
    ]
    bodiless = [
        case("GET", "", {}, nameless, method="GET"),
        case("GET of a timer with an empty raw body", "", {**named, **instants}, raw, method="GET"),
        case("GET beside headers of another timer", "", foreign, None, method="GET"),
        case("HEAD", "", {}, nameless, method="HEAD"),
    ]
    ids = [
        case("an envelope with a foreign webhook-id", _ENVELOPE, {}, None, "0f6d3c1e-7a52-4c0e-9a57-1f0f5d2f6b11"),
        case("a raw body with a foreign webhook-id", "<note/>", named, None, "msg_2b5OqQPnXmX0rIZfTz7kZvJ1w4K"),
        case("an upper-case webhook-id", _ENVELOPE, {}, None, f"msg_{hex_id.upper()}_1-2"),
        case("a webhook-id without a name", _ENVELOPE, {}, None, f"msg_{hex_id}"),
        case("a webhook-id with hyphens", _ENVELOPE, {}, None, f"msg_{uuid.UUID(hex_id)}_1-2"),
        case("something before the webhook-id", _ENVELOPE, {}, None, f"xmsg_{hex_id}_1-2"),
    ]
    return [*envelopes, *raws, *bodiless, *ids]


def _budget() -> list[Json]:
    def case(name: str, *events: Json) -> Json:
        left, results = 1_000, []  # in tenths
        for event in events:
            if "retries" in event:
                allowed = min(event["retries"], left // 10)
                left -= 10 * allowed
                results.append({"allowed": allowed, "left": left / 10})
            else:
                for _ in range(event["successes"]):
                    left = min(1_000, left + (10 * event["paid"] or 1))
                results.append({"left": left / 10})
        return _case(name, {"events": list(events)}, {"results": results})

    def retries(number: int) -> Json:
        return {"retries": number}

    def successes(number: int, paid: int = 0) -> Json:
        return {"successes": number, "paid": paid}

    return [
        case("nothing succeeds", retries(1), retries(99), retries(1)),
        case("more is asked for than is left", retries(101)),
        case("no success adds to a full budget", successes(3), retries(1)),
        case("a success at the first try pays a tenth", retries(2), successes(1), successes(9), successes(11)),
        case("a call that succeeds gets back what it paid", retries(3), successes(1, paid=3), retries(100), retries(1)),
        case("what failed calls paid is not given back", retries(60), retries(3), successes(1, paid=3), retries(41)),
        case("nine tenths are not enough", retries(100), successes(9), retries(1), successes(1), retries(2)),
        case("never more than at the beginning", retries(1), successes(5), successes(1, paid=1), successes(1, paid=4)),
    ]


def _tries() -> list[Json]:
    def case(name: str, line: str, **members: Any) -> Json:
        given = {"operation": "createTimer", "number": 1, **members}
        return _case(name, given, {"line": line})

    refused, cut = "connection refused", "connection closed before the answer"
    return [
        case("a success", "createTimer, try 1: 200 in 0.012 s", status=200, seconds=0.0123),
        case(
            "without a body", "deleteTimer, try 2: 204 in 1.000 s",
            operation="deleteTimer", number=2, status=204, seconds=1,
        ),
        case(
            "a code", "createTimer, try 1: 503 NOT_READY in 0.003 s, next try in 0.071 s",
            status=503, code="NOT_READY", seconds=0.0026, pauseSeconds=0.0712,
        ),
        case("a status without a code", "createTimer, try 12: 502 in 14.999 s", number=12, status=502, seconds=14.9988),
        case(
            "no answer", f"createTimer, try 1: {refused} in 0.000 s, next try in 2.000 s",
            error=refused, seconds=0.0001, pauseSeconds=2,
        ),
        case("no answer, the last try", f"createTimer, try 3: {cut} in 0.250 s", number=3, error=cut, seconds=0.25),
        case(
            "the next try at once", "createTimer, try 1: 429 SHARD_BUSY in 0.001 s, next try in 0.000 s",
            status=429, code="SHARD_BUSY", seconds=0.001, pauseSeconds=0,
        ),
        case(
            "a wait of minutes", "createTimer, try 1: 429 in 0.010 s, next try in 1234.568 s",
            status=429, seconds=0.01, pauseSeconds=1234.5678,
        ),
    ]  # fmt: skip


def _refused(name: str, given: Json, hidden: str, named: str) -> Json:
    """A case whose error is InvalidArgument, whose message has no such text, and names what is wrong."""
    matched: Json = {"$matches": f"(?s)^(?!.*{hidden}).*{named}"}
    return _case(name, given, {"error": {"classes": {"$contains": "InvalidArgument"}, "message": matched}})


def _keys() -> list[Json]:
    key = "tk_1f0c9a7be2d4_SECRET"
    good = {
        "as it is": key, "before a line feed": f"{key}\n", "before CR and LF": f"{key}\r\n",
        "between white space": f" \t{key} \t",
        "all visible characters": "".join(map(chr, range(0x21, 0x7F))),
    }  # fmt: skip
    bad = {
        "empty": "", "white space": " \t\r\n", "a line feed inside": "tk_SECRET\nx-other: 1", "a space inside": "tk_ SECRET",
        "a tab inside": "tk_\tSECRET", "NUL inside": "tk_\0SECRET", "DEL inside": "tk_\x7fSECRET", "not ASCII": "tk_SECRETé",
        "a text in quotation marks of a word processor": "“tk_SECRET”",
    }  # fmt: skip
    return [_case(name, {"key": given}, {"key": given.strip()}) for name, given in good.items()] + [
        _refused(f"refused: {name}", {"key": given}, "SECRET", "key") for name, given in bad.items()
    ]


def _urls() -> list[Json]:
    good = (
        *("http://127.0.0.1:8080", "http://127.0.0.1:8080/", "https://tocsin.example", "https://tocsin.example/"),
        *("https://tocsin.example/timers", "https://tocsin.example/timers/", "https://tocsin.example:8443/a/b-c_d.e/"),
        *("http://[::1]:8080", "http://localhost:1", "http://localhost:65535", "http://my-host.internal:8080"),
    )
    bad = (
        *("", "tocsin.example", "127.0.0.1:8080", "ftp://tocsin.example", "//tocsin.example", "http:tocsin.example"),
        *(
            "http://",
            "http:///timers",
            "http://:8080",
            "http://exa mple",
            " http://tocsin.example",
            "http://tocsin.example/a b",
        ),
        *("http://tocsin.example\n", "http://toc\tsin.example", "http://tocsin.example/\x7f", "http://[::1:8080"),
        *(
            "http://tocsin.example:0",
            "http://tocsin.example:65536",
            "http://tocsin.example:99999",
            "http://tocsin.example:x",
        ),
        *("http://tocsin.example:-1", "http://user:SECRET@tocsin.example", "http://SECRET@tocsin.example"),
        *("http://tocsin.example?a=1", "http://tocsin.example/timers?a=1", "http://tocsin.example#a"),
    )
    return [_case(text, {"url": text}, {"base": text.rstrip("/")}) for text in good] + [
        _refused(f"refused: {text!r}", {"url": text}, "SECRET", "url") for text in bad
    ]
