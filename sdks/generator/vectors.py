"""Test vectors: what every SDK computes itself, as the server's own model computes it. `sdks/README.md` describes the files.

`placement.json` is not made here: stored timers depend on it, so it must never follow a change of the model.
"""

from __future__ import annotations

import json
from typing import Any

from scripts.openapi.codes import CODES

from tocsin.model.instants import format_duration, format_instant, parse_duration, parse_instant
from tocsin.web.http.errors import problem_type

from . import outbox_vectors, receiver_vectors
from .cases import Json, case_of
from .document import Api

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


#: Optional parts of drivers.
_NEEDS = {"outbox": {"needs": ["outbox"]}}


def files(api: Api) -> dict[str, str]:
    """The files of vectors: their contents by path below `sdks/`."""
    made = {
        "signatures": (
            "Whether a receiver accepts a request. `unsigned`: there are no signature headers; `wrong`: no signature fits, "
            "the timestamp is not 1 to 12 ASCII digits, or there are more than 10 signatures; `stale`: the timestamp is "
            "further from now than the tolerance. Signatures are separated by single spaces: between two in a row is an "
            "empty one.",
            receiver_vectors.signature_cases(),
        ),
        "signing": ("The signatures of a message, one for each secret.", receiver_vectors.signing_cases()),
        "firings": (
            "What a receiver reads of a request whose signature is valid or not checked. An error: the request is refused as "
            "if its signature was wrong. `body` is text in UTF-8. Of `expect`, null is what a firing does not have.",
            receiver_vectors.firing_cases(),
        ),
        "batches": (
            "What a receiver reads of a batch whose signature is valid or not checked, and responds to it when its handler "
            "gives each timer the answer with its id. An error: the request is refused as if its signature was wrong. `body` "
            "is text in UTF-8.",
            receiver_vectors.batch_cases(),
        ),
        "instants": ("RFC 3339 texts and their canonical form. Digits finer than a microsecond round up.", _instants()),
        "durations": ("Texts of durations; and durations as the shortest text.", _durations()),
        "answers": ("What a receiver sends for an answer of its handler.", _ANSWERS),
        "errors": (
            "The error that an answer of the server becomes. A body is Tocsin's if it is a JSON object with text as `error` "
            "and, where they are, text as `message` and a list of objects with text as `path` and `reason` as `errors`. "
            "Any other body counts only as the beginning of a text, which is the message.",
            _errors(api),
        ),
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
        "outbox": (outbox_vectors.ABOUT, outbox_vectors.outbox_cases()),
        "urls": ("A client's URL as paths are appended to it. No message contains a password.", _urls()),
    }
    return {
        f"vectors/{name}.json": json.dumps(
            {"about": about, **_NEEDS.get(name, {}), "cases": cases}, indent=2, ensure_ascii=False
        )
        + "\n"
        for name, (about, cases) in made.items()
    }


def _instants() -> list[Json]:
    good = [case_of(text, {"text": text}, {"text": format_instant(parse_instant(text))}) for text in _INSTANTS]
    return good + [case_of(f"refused: {text!r}", {"text": text}, {"error": "instant"}) for text in _NO_INSTANTS]


def _durations() -> list[Json]:
    read = [case_of(text, {"text": text}, {"microseconds": parse_duration(text)}) for text in _DURATIONS]
    bad = [case_of(f"refused: {text!r}", {"text": text}, {"error": "duration"}) for text in _NO_DURATIONS]
    return (
        read + bad + [case_of(f"{us} us", {"microseconds": us}, {"text": format_duration(us)}) for us in _MICROSECONDS]
    )


_AT = "2027-01-31T12:00:00.5Z"
_AT_WRITTEN = "2027-01-31T12:00:00.500000Z"
_ANSWERS = [
    case_of("done", {"answer": {"done": {}}}, {"status": 200, "body": {"ok": True}}),
    case_of(
        "rescheduled",
        {"answer": {"rescheduleAt": {"at": _AT}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN}},
    ),
    case_of(
        "rescheduled with another payload",
        {"answer": {"rescheduleAt": {"at": _AT, "payload": {"n": 2}}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN, "payload": {"n": 2}}},
    ),
    case_of(
        "rescheduled with null as payload",
        {"answer": {"rescheduleAt": {"at": _AT, "payload": None}}},
        {"status": 200, "body": {"nextExecuteAt": _AT_WRITTEN, "payload": None}},
    ),
    case_of("retry", {"answer": {"retry": {}}}, {"status": 503, "headers": {}}),
    case_of("retry later", {"answer": {"retry": {"after": 30}}}, {"status": 503, "headers": {"retry-after": "30"}}),
    case_of(
        "retry after a fraction",
        {"answer": {"retry": {"after": 0.2}}},
        {"status": 503, "headers": {"retry-after": "1"}},
    ),
    case_of("failed", {"answer": {"fail": {"reason": "no such order"}}}, {"status": 422}),
    case_of("raised", {"answer": {"raise": "a defect"}}, {"status": 500}),
]


def _errors(api: Api) -> list[Json]:
    cases = []
    for error in api.errors:
        status, example = error.status, CODES[error.code].example
        fields = [{"path": "delay", "reason": "is not a duration"}] if error.code == "INVALID_INPUT" else []
        body = {
            "type": problem_type(error.code), "title": "", "status": status, "detail": example, "instance": "/x",
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
        cases.append(case_of(error.code, {"status": status, "headers": headers, "body": body}, expected))
    unknown = {"error": "NEW_CODE", "message": "later", "status": 409, "errors": []}
    cases.append(
        case_of(
            "an unknown code",
            {"status": 409, "headers": {"content-type": "application/problem+json"}, "body": unknown},
            {"classes": ["Conflict", "ApiError", "TocsinError"], "status": 409, "code": "NEW_CODE"},
        )
    )
    for status, group in ((404, "NotFound"), (418, "InvalidInput"), (502, "Unavailable"), (500, "ServerError")):
        cases.append(
            case_of(
                f"{status} of a proxy",
                {"status": status, "headers": {"content-type": "text/html"}, "body": "<html>"},
                {"classes": [group, "ApiError", "TocsinError"], "status": status},
            )
        )
    field = {"path": "delay", "reason": "is not a duration"}
    foreign: dict[str, Any] = {
        "fields that are texts": {"error": "Bad Request", "errors": ["name is missing"]},
        "fields that are a number": {"error": "Bad Request", "errors": 5},
        "fields that are an object": {"error": "Bad Request", "errors": field},
        "a field that is null": {"error": "Bad Request", "errors": [field, None]},
        "a field without a reason": {"error": "Bad Request", "errors": [{"path": "delay"}]},
        "a field whose path is a list": {"error": "Bad Request", "errors": [{**field, "path": ["delay"]}]},
        "an error that is an object": {"error": {"reason": "Bad Request"}, "message": "later"},
        "a message that is an object": {"error": "Bad Request", "message": {"reason": "later"}},
        "a list": ["Bad Request"],
        "a text": '"Bad Request"',
        "nested too deeply": '{"error": "Bad Request", "errors": ' + "[" * 20_000,
    }
    for name, body in foreign.items():
        cases.append(
            case_of(
                f"502 of a proxy: {name}",
                {"status": 502, "headers": {"content-type": "application/json"}, "body": body},
                {
                    "classes": ["Unavailable", "ApiError", "TocsinError"], "status": 502, "code": {"$absent": True},
                    "message": {"$matches": "Bad Request"},
                },
            )
        )  # fmt: skip
    return cases


def _retries() -> list[Json]:
    def case(expected: float | None, **given: float) -> Json:
        name = ", ".join(f"{key} {value:g}" for key, value in given.items())
        return case_of(name, given, {"error": "give up"} if expected is None else {"delaySeconds": expected})

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
        return case_of(name, {"events": list(events)}, {"results": results})

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
        return case_of(name, given, {"line": line})

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
    return case_of(name, given, {"error": {"classes": {"$contains": "InvalidArgument"}, "message": matched}})


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
    return [case_of(name, {"key": given}, {"key": given.strip()}) for name, given in good.items()] + [
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
    return [case_of(text, {"url": text}, {"base": text.rstrip("/")}) for text in good] + [
        _refused(f"refused: {text!r}", {"url": text}, "SECRET", "url") for text in bad
    ]
