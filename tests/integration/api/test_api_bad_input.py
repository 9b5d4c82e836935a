"""Invalid requests: each gets a 4xx that names the field, and writes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from api_server import Served
from tests.support.cases import each

TIMER: dict[str, Any] = {"namespace": "default", "id": "t1", "delay": "1h", "callbackUrl": "https://a.example/x"}
JSON = {"content-type": "application/json"}


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in TIMER.items() if name not in names}


def at(instant: str) -> dict[str, Any]:
    return {**without("delay"), "executeAt": instant}


def assert_problem(answer: Any, status: int, error: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["error"] == error
    assert problem["type"].endswith(error)
    assert problem["detail"] == problem["message"] != ""
    assert problem["instance"] == answer.request.url.raw_path.decode().partition("?")[0]
    assert problem["correlationId"] == answer.headers["x-correlation-id"]
    assert datetime.fromisoformat(problem["timestamp"]).tzinfo == UTC
    return problem


BAD_TIMERS: list[tuple[dict[str, Any], str, str]] = [
    # (what is sent, the path named, words of the reason)
    (without("namespace"), "namespace", "is missing"),
    (without("id"), "id", "is missing"),
    (without("callbackUrl"), "callbackUrl", "is missing"),
    (without("delay"), "executeAt", "send executeAt or delay"),
    ({**TIMER, "executeAt": "2027-01-31T12:00:00Z"}, "delay", "send only one of them"),
    ({**TIMER, "id": 7}, "id", "must be a string, not a whole number"),
    ({**TIMER, "id": None}, "id", "must be a string, not null"),
    ({**TIMER, "id": ""}, "id", "is empty"),
    ({**TIMER, "id": "x" * 256}, "id", "at most 255"),
    ({**TIMER, "id": "a\u0000b"}, "id", "control characters"),
    ({**TIMER, "id": "a\u0085b"}, "id", "control characters"),
    ({**TIMER, "namespace": "a b"}, "namespace", "A-Z"),
    ({**TIMER, "namespace": "default\n"}, "namespace", "A-Z"),
    ({**TIMER, "namespace": "x" * 256}, "namespace", "1 to 255"),
    ({**TIMER, "timerId": "t"}, "timerId", "differs from id"),
    ({**without("id"), "timerId": ""}, "timerId", "is empty"),
    ({**TIMER, "callbackURL": "x"}, "callbackURL", "did you mean callbackUrl"),
    ({**TIMER, "zzz": 1}, "zzz", "is not a field here; fields are: namespace"),
    (at("2027-01-31T12:00:00"), "executeAt", "no time zone"),
    (at("2027-01-31"), "executeAt", "RFC 3339"),
    (at("2027-02-30T12:00:00Z"), "executeAt", "date that does not exist"),
    (at("0001-01-01T00:00:00Z"), "executeAt", "too far in the past"),
    (at("9999-12-31T23:59:59Z"), "executeAt", "too far ahead"),
    ({**without("delay"), "executeAt": 1_800_000_000}, "executeAt", "write it as 2027-01-31T12:00:00Z"),
    ({**TIMER, "delay": "1 hour"}, "delay", "500ms"),
    ({**TIMER, "delay": "-5s"}, "delay", "is negative"),
    ({**TIMER, "delay": "40000d"}, "delay", "too long"),
    ({**TIMER, "delay": "9" * 400 + "d"}, "delay", "too long"),
    ({**TIMER, "delay": 30}, "delay", "write it as 30s"),
    *(({**TIMER, "expireAfter": value}, "expireAfter", "") for value in ("", "soon", "999ms", "40000d", None, 5)),
    ({**TIMER, "callbackUrl": "ftp://a.example"}, "callbackUrl", "http or https"),
    ({**TIMER, "callbackUrl": "/hook"}, "callbackUrl", "http or https"),
    ({**TIMER, "callbackUrl": "https://"}, "callbackUrl", "no host"),
    ({**TIMER, "callbackUrl": "https://a.example/\r\nx: y"}, "callbackUrl", "control characters"),
    ({**TIMER, "callbackUrl": "https://a.example/" + "x" * 2048}, "callbackUrl", "at most 2048"),
    ({**TIMER, "callbackUrl": "http://user:pw@a.example/"}, "callbackUrl", "credentials"),
    ({**TIMER, "callbackUrl": "http://10.1.2.3/"}, "callbackUrl", "private address"),
    ({**TIMER, "payload": json.loads("[" * 101 + "]" * 101)}, "payload", "nested too deep"),
    ({**TIMER, "method": "post"}, "method", "POST"),
    ({**TIMER, "method": "CONNECT"}, "method", "use one of"),
    ({**TIMER, "headers": {"x": 1}}, "headers", "has a value that must be a string"),
    ({**TIMER, "headers": {"Host": "x"}}, "headers.Host", "leave it out"),
    ({**TIMER, "headers": {"Webhook-Id": "x"}}, "headers.Webhook-Id", "leave it out"),
    ({**TIMER, "headers": {"x": "a\r\nb: c"}}, "headers.x", "line breaks"),
    ({**TIMER, "headers": {"a b": "c"}}, "headers.a b", "not a header name"),
    ({**TIMER, "headers": {"x": "1", "X": "2"}}, "headers.X", "is a duplicate"),
    ({**TIMER, "headers": {f"x-{number}": "" for number in range(33)}}, "headers", "at most 32"),
    ({**TIMER, "headers": {"x": "v" * 4097}}, "headers.x", "at most 4096"),
    ({**TIMER, "tags": "a"}, "tags", "must be an array"),
    ({**TIMER, "tags": ["a", 1]}, "tags[1]", "must be a string"),
    ({**TIMER, "tags": ["a", ""]}, "tags[1]", "is empty"),
    ({**TIMER, "tags": ["x" * 65]}, "tags[0]", "at most 64"),
    ({**TIMER, "tags": ["a", "b", "a"]}, "tags[2]", "is a duplicate"),
    ({**TIMER, "tags": [str(number) for number in range(17)]}, "tags", "at most 16"),
    ({**TIMER, "callbackTimeoutSeconds": 0}, "callbackTimeoutSeconds", "1 to 60"),
    ({**TIMER, "callbackTimeoutSeconds": 61}, "callbackTimeoutSeconds", "1 to 60"),
    ({**TIMER, "callbackTimeoutSeconds": 1e308}, "callbackTimeoutSeconds", "1 to 60"),
    ({**TIMER, "callbackTimeoutSeconds": "10"}, "callbackTimeoutSeconds", "must be a number"),
    ({**TIMER, "retryPolicy": {"maxRetries": 3}}, "retryPolicy.maxRetries", "use maxAttempts"),
    (
        {**TIMER, "retryPolicy": {"maxRetryAttemptsDuration": "1h"}},
        "retryPolicy.maxRetryAttemptsDuration",
        "use maxAttemptsDuration",
    ),
    ({**TIMER, "maxRetries": 3}, "maxRetries", "is not a field here"),
    ({**TIMER, "retryPolicy": {"maxAttempts": 0}}, "retryPolicy.maxAttempts", "1 to 1000"),
    ({**TIMER, "retryPolicy": {"maxAttempts": 10**30}}, "retryPolicy.maxAttempts", "1 to 1000"),
    ({**TIMER, "retryPolicy": {"maxAttempts": 2.5}}, "retryPolicy.maxAttempts", "whole number"),
    ({**TIMER, "retryPolicy": {"backoffMultiplier": 0.5}}, "retryPolicy.backoffMultiplier", "1 to 100"),
    ({**TIMER, "retryPolicy": {"initialInterval": "0s"}}, "retryPolicy.initialInterval", "greater than zero"),
    ({**TIMER, "retryPolicy": {"initialInterval": "soon"}}, "retryPolicy.initialInterval", "is not a duration"),
    (
        {**TIMER, "retryPolicy": {"maxInterval": "1s", "initialInterval": "2s"}},
        "retryPolicy.maxInterval",
        "shorter than initialInterval",
    ),
    ({**TIMER, "retryPolicy": {"maxAttemptsDuration": "9000d"}}, "retryPolicy.maxAttemptsDuration", "at most 366d"),
    ({**TIMER, "payload": 1, "body": {"text": "x"}}, "body", "send only one of them"),
    ({**TIMER, "payload": 1, "method": "GET"}, "payload", "is not sent with GET"),
    ({**TIMER, "body": {"text": "x"}, "method": "HEAD"}, "body", "is not sent with HEAD"),
    ({**TIMER, "body": {}}, "body", "exactly one of json, text and base64"),
    ({**TIMER, "body": {"text": "x", "json": 1}}, "body", "exactly one of json, text and base64"),
    ({**TIMER, "body": "x"}, "body", "must be an object"),
    ({**TIMER, "body": {"text": 1}}, "body.text", "must be a string"),
    ({**TIMER, "body": {"data": 1}}, "body.data", "is not a field here"),
    ({**TIMER, "body": {"base64": "AA"}}, "body.base64", "is not valid base64"),
    ({**TIMER, "body": {"base64": "A-_="}}, "body.base64", "is not valid base64"),
    ({**TIMER, "body": {"text": "x", "contentType": "text"}}, "body.contentType", "is not a media type"),
    ({**TIMER, "body": {"text": "x", "contentType": "text/a\r\nx: y"}}, "body.contentType", "is not a media type"),
    ({**TIMER, "body": {"text": "x", "contentType": "text/" + "a" * 251}}, "body.contentType", "at most 255"),
    ({**TIMER, "body": {"text": "x"}, "headers": {"Content-Type": "a/b"}}, "headers.Content-Type", "body.contentType"),
    ({**TIMER, "body": {"text": "x"}, "headers": {"content_type": "a/b"}}, "headers.content_type", "body.contentType"),
    ({**TIMER, "body": {"text": "x"}, "headers": {"tocsin-attempt": "1"}}, "headers.tocsin-attempt", "leave it out"),
    ({**TIMER, "retryPolicy": []}, "retryPolicy", "must be an object or null, not an array"),
]


@each("sent, path, words", BAD_TIMERS)
def test_bad_timer_is_refused_by_field(server: Served, sent: dict[str, Any], path: str, words: str) -> None:
    server.service.clear()
    problem = assert_problem(server.post("timers/create", sent), 400, "INVALID_INPUT")
    assert [bad["path"] for bad in problem["errors"]] == [path]
    assert words in problem["errors"][0]["reason"]
    assert server.service.timers == {}
    # The same among good ones: it alone fails.
    answer = server.post("timers/batch/create", {"timers": [{**TIMER, "id": "good"}, sent]}).json()
    assert answer["results"][0]["timer"]["id"] == "good"
    (bad,) = answer["results"][1]["error"]["errors"]
    assert bad["path"] == f"timers[1].{path}"
    assert words in bad["reason"]
    assert list(server.service.timers) == [("default", "good")]


def test_all_bad_fields_are_named_at_once(server: Served) -> None:
    sent = {
        "namespace": "no good",
        "id": "",
        "executeAt": "tomorrow",
        "callbackUrl": "x",
        "tags": [""],
        "headers": {"host": "x"},
        "retryPolicy": {"maxAttempts": 0, "initialInterval": "0s", "backoffMultiplier": 101},
        "callbackTimeoutSeconds": 0.5,
        "method": "GIT",
    }
    problem = assert_problem(server.post("timers/create", sent), 400, "INVALID_INPUT")
    assert {bad["path"] for bad in problem["errors"]} == {
        "namespace",
        "id",
        "executeAt",
        "callbackUrl",
        "tags[0]",
        "headers.host",
        "retryPolicy.maxAttempts",
        "retryPolicy.initialInterval",
        "retryPolicy.backoffMultiplier",
        "callbackTimeoutSeconds",
        "method",
    }


@each(
    "call, sent, path",
    [
        ("timers/get", {"namespace": "default", "id": "x", "timerId": "y"}, "timerId"),
        ("timers/get", {"namespace": "default", "id": "x" * 256}, "id"),
        ("timers/get", {"namespace": "default"}, "timerId"),
        ("timers/delete", {"namespace": "default", "timerId": "x" * 256}, "timerId"),
        ("timers/update", {"namespace": "default", "timerId": "x", "delay": "soon"}, "delay"),
        (
            "timers/update",
            {"namespace": "default", "timerId": "x", "delay": "1s", "executeAt": "2027-01-31T12:00:00Z"},
            "delay",
        ),
        ("timers/update", {"namespace": "default", "timerId": "x", "executeAt": "9999-01-01T00:00:00Z"}, "executeAt"),
        ("timers/update", {"namespace": "default", "timerId": "x", "callbackUrl": "http://10.0.0.1/"}, "callbackUrl"),
        ("timers/list", {"namespace": "default", "limit": 1001}, "limit"),
        ("timers/list", {"namespace": "default", "limit": 0}, "limit"),
        ("timers/list", {"namespace": "default", "status": "done"}, "status"),
        ("timers/list", {"namespace": "default", "status": ["pending", "done"]}, "status[1]"),
        ("timers/list", {"namespace": "default", "executeAfter": "2027-01-31T12:00:00"}, "executeAfter"),
        ("timers/list", {"namespace": "default", "cursor": ""}, "cursor"),
        ("timers/batch/create", {"timers": {}}, "timers"),
        ("timers/batch/create", {"timer": []}, "timer"),
        ("namespaces/create", {"name": "a/b"}, "name"),
        ("namespaces/create", {"namespace": "a"}, "namespace"),
        ("namespaces/create", {"name": "a", "numShards": 0}, "numShards"),
        ("namespaces/create", {"name": "a", "history": "some"}, "history"),
        ("namespaces/create", {"name": "a", "retention": "forever"}, "retention"),
        ("namespaces/create", {"name": "a", "secret": "whsec_short"}, "secret"),
        ("namespaces/update", {"name": "default", "paused": "yes"}, "paused"),
        ("namespaces/list", {"name": "default"}, "name"),
    ],
)
def test_bad_fields_of_other_operations_are_named(server: Served, call: str, sent: dict[str, Any], path: str) -> None:
    problem = assert_problem(server.post(call, sent), 400, "INVALID_INPUT")
    assert [bad["path"] for bad in problem["errors"]] == [path]


@each(
    "body, words",
    [
        (b"", "ends too early"),
        (b"{", "ends too early"),
        (b'{"id": oops}', "at byte 7"),
        (json.dumps(TIMER).encode() + b" tail", "trailing characters at byte"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b'{"namespace":"default","id":"a","delay":"1s","callbackUrl":"http://a","payload":"\xff"}', "at byte 81"),
        (b'{"id": "\\ud800 "}', "not JSON"),
        (b"\xef\xbb\xbf{}", "at byte 0"),
        (b'{"payload":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "nested too deep"),
        (b'{"timers":' + b"[" * 50_000 + b"]" * 50_000 + b"}", ""),
    ],
)
@each("call", ["timers/create", "timers/batch/create"])
def test_bodies_that_are_not_json_are_refused(server: Served, call: str, body: bytes, words: str) -> None:
    answer = server.client.post(f"/api/v1/{call}", content=body, headers=JSON)
    assert answer.status_code == 400
    if call == "timers/create":
        assert words in answer.json()["detail"]
    assert server.service.timers == {}


@each("body", [b"[]", b"null", b'"x"', b"3"])
def test_bodies_that_are_not_objects_are_refused(server: Served, body: bytes) -> None:
    problem = assert_problem(server.client.post("/api/v1/timers/get", content=body, headers=JSON), 400, "INVALID_INPUT")
    assert problem["detail"].startswith("the body must be an object, not ")


@each(
    "headers, status",
    [
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": 'Application/JSON; charset="UTF-8"'}, 200),
    ],
)
def test_media_types_other_than_json_are_refused(server: Served, headers: dict[str, str], status: int) -> None:
    answer = server.client.post("/api/v1/timers/create", content=json.dumps(TIMER).encode(), headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert_problem(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert server.service.timers == {}


def test_longest_values_are_accepted(server: Served) -> None:
    # The lengths count characters, not bytes; the payload's size counts the bytes of its text.
    sent = {
        **TIMER,
        "id": "é" * 255,
        "tags": ["ü" * 64, *(str(number) for number in range(15))],
        "payload": "x" * (100 * 1024 - 2),
        "callbackTimeoutSeconds": 60,
        "retryPolicy": {"maxAttempts": 1000, "backoffMultiplier": 100, "maxInterval": "366d"},
        "headers": {f"x-{number}": "v" for number in range(32)},
    }
    assert server.post("timers/create", sent).status_code == 200
    refused = server.post("timers/create", {**sent, "payload": "x" * (100 * 1024 - 1)})
    assert (refused.status_code, refused.json()["error"]) == (413, "PAYLOAD_TOO_LARGE")
    assert refused.json()["errors"][0]["path"] == "payload"
    # The size of a raw body is that of its bytes on the wire.
    del sent["payload"]
    for form, fits, too_long in (
        ("text", "é" * 51_200, "é" * 51_201),
        ("json", "x" * 102_398, "x" * 102_399),
        ("base64", "/w==".rjust(136_532, "A"), "A" * 136_536),
    ):
        assert server.post("timers/create", {**sent, "body": {form: fits}}).status_code == 200, form
        refused = server.post("timers/create", {**sent, "body": {form: too_long}})
        assert (refused.status_code, refused.json()["error"]) == (413, "PAYLOAD_TOO_LARGE"), form
        assert refused.json()["errors"][0]["path"] == f"body.{form}"


def test_unknown_names_are_not_found(server: Served) -> None:
    assert_problem(server.post("timers/create", {**TIMER, "namespace": "nowhere"}), 404, "NAMESPACE_NOT_FOUND")
    for call in ("get", "delete"):
        name = {"namespace": "default", "timerId": "nobody"}
        assert_problem(server.post(f"timers/{call}", name), 404, "TIMER_NOT_FOUND")
    assert_problem(server.post("namespaces/update", {"name": "nowhere"}), 404, "NAMESPACE_NOT_FOUND")


STRICT = [
    ("POST", "timers/create", TIMER),
    ("POST", "timers/get", {"namespace": "default", "timerId": "t1"}),
    ("POST", "timers/update", {"namespace": "default", "timerId": "t1", "payload": 1}),
    ("POST", "timers/delete", {"namespace": "default", "timerId": "t1"}),
    ("POST", "timers/list", {"namespace": "default"}),
    ("POST", "timers/batch/create", {"timers": [TIMER]}),
    ("POST", "namespaces/create", {"name": "orders"}),
    ("POST", "namespaces/list", {}),
    ("POST", "namespaces/update", {"name": "default", "paused": True}),
]


@each("method, path, body", STRICT)
def test_query_parameters_of_an_operation_with_a_body_are_refused_by_name(
    server: Served, method: str, path: str, body: Any
) -> None:
    server.service.clear()
    answer = server.client.request(method, f"/api/v1/{path}?status=failed&limit=10", json=body)
    problem = assert_problem(answer, 400, "INVALID_INPUT")
    reason = "is not a query parameter here; there are none: send the fields in the body"
    assert problem["errors"] == [{"path": "status", "reason": reason}, {"path": "limit", "reason": reason}]
    assert server.service.timers == {}
    # An empty query is none.
    assert server.client.request(method, f"/api/v1/{path}?", json=body).status_code != 400


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_unknown_query_parameters_of_an_operation_without_a_body_are_refused_by_name(
    server: Served, method: str
) -> None:
    answer = server.client.request(method, "/api/v1/cluster?limit=10&cursor=x")
    assert answer.status_code == 400
    if method == "GET":
        reason = "is not a query parameter here; parameters are: view"
        assert assert_problem(answer, 400, "INVALID_INPUT")["errors"] == [
            {"path": "limit", "reason": reason},
            {"path": "cursor", "reason": reason},
        ]
    assert server.client.request(method, "/api/v1/cluster").status_code == 200


@each(
    "path",
    ["/healthz", "/readyz", "/metrics", "/openapi.json", "/api/v1/openapi.json"],
)
def test_probes_metrics_and_the_description_ignore_the_query(server: Served, path: str) -> None:
    assert server.client.get(f"{path}?name[]=up&v=%FF&v=2").status_code == server.client.get(path).status_code == 200
