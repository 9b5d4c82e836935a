"""The operations on service calls over HTTP: refused requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from api_server import Keys, Served
from test_api_service_calls import CALL, CALL_ID, CALLS, OTHER, SPEC, TENANT
from tests.support.cases import each

from tocsin.model.access import Role
from tocsin.model.errors import StoreUnavailable, Unavailable
from tocsin.ports.bus import BusOverloaded, BusUnavailable, RequestUnanswered
from tocsin.service_calls.messages import CommandRefused

JSON = {"content-type": "application/json"}

#: Method, path, body, role: every operation once.
ROUTES: list[tuple[str, str, Any, Role]] = [
    ("POST", CALLS, {**CALL, "serviceCallId": CALL_ID}, Role.WRITE),
    ("GET", CALLS, None, Role.READ),
    ("GET", f"{CALLS}/{CALL_ID}", None, Role.READ),
    ("GET", f"{CALLS}/{CALL_ID}/trace", None, Role.READ),
    ("PUT", f"{CALLS}/{CALL_ID}/tags/a", None, Role.WRITE),
    ("DELETE", f"{CALLS}/{CALL_ID}/tags/a", None, Role.WRITE),
    ("DELETE", f"{CALLS}/{CALL_ID}", None, Role.WRITE),
]
COMMANDS = [(method, path, body) for method, path, body, role in ROUTES if role is Role.WRITE]
READS = [(method, path, body) for method, path, body, role in ROUTES if role is Role.READ]


def refused(answer: httpx.Response, status: int, error: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem["error"]) == (status, error)
    assert problem["correlationId"] == answer.headers["x-correlation-id"]
    assert problem["instance"] == answer.request.url.raw_path.split(b"?")[0].decode()
    return problem


def bad_fields(answer: httpx.Response, error: str = "INVALID_INPUT") -> dict[str, str]:
    return {bad["path"]: bad["reason"] for bad in refused(answer, 400, error)["errors"]}


# ------------------------------------------------------------------ fields


def spec(**fields: Any) -> dict[str, Any]:
    return {**CALL, "requestSpec": {**SPEC, **fields}}


def without(name: str) -> dict[str, Any]:
    return {field: value for field, value in CALL.items() if field != name}


#: `test_api_bad_input.py` has the values that a timer is refused for, too: here a row shows that each field is checked.
BAD_CALLS: list[tuple[Any, str, str]] = [
    (without("name"), "name", "is missing"),
    (without("requestSpec"), "requestSpec", "is missing"),
    ({**CALL, "name": ""}, "name", "is empty"),
    ({**CALL, "name": 1}, "name", "must be a string"),
    ({**CALL, "name": "x" * 201}, "name", "at most 200"),
    ({**CALL, "name": "a\nb"}, "name", "control characters"),
    ({**CALL, "nane": "x"}, "nane", "did you mean name"),
    ({**CALL, "executeAt": "x"}, "executeAt", "use dueAt"),
    ({**CALL, "tenantId": TENANT}, "tenantId", "is not a field here"),
    ({**CALL, "requestSpec": None}, "requestSpec", "must be an object"),
    ({**CALL, "requestSpec": {"url": "https://a.example/"}}, "requestSpec.method", "is missing"),
    ({**CALL, "requestSpec": {"method": "GET"}}, "requestSpec.url", "is missing"),
    (spec(timeout=3), "requestSpec.timeout", "fields are: method, url, headers, body"),
    (spec(method="TRACE"), "requestSpec.method", "use one of GET"),
    (spec(method=1), "requestSpec.method", "must be a string"),
    (spec(url="ftp://a.example/"), "requestSpec.url", "http or https"),
    (spec(url="http://10.1.2.3/"), "requestSpec.url", "private address"),
    (spec(headers={"a b": "c"}), "requestSpec.headers", "not a header name"),
    (spec(headers={"a": "b\r\nc: d"}), "requestSpec.headers", "other than visible ASCII"),
    (spec(headers={"a": 1}), "requestSpec.headers", "must be a string"),
    (spec(headers=[]), "requestSpec.headers", "must be an object"),
    (spec(method="GET", body={}), "requestSpec.body", "can't be sent with GET"),
    (spec(body=json.loads("[" * 101 + "]" * 101)), "requestSpec.body", "nested too deep"),
    ({**CALL, "dueAt": "2027-01-31T12:00:00"}, "dueAt", "no time zone"),
    ({**CALL, "dueAt": None}, "dueAt", "must be a string"),
    ({**CALL, "dueAt": "0001-01-01T00:00:00Z"}, "dueAt", "too far in the past"),
    ({**CALL, "tags": ["a", ""]}, "tags[1]", "is empty"),
    ({**CALL, "tags": ["a", "b", "a"]}, "tags[2]", "is a duplicate"),
    ({**CALL, "serviceCallId": "01890a5d-ac96-474b-bcce-b302099a8058"}, "serviceCallId", "must be a UUID of version 7"),
    ({**CALL, "idempotencyKey": ""}, "idempotencyKey", "is empty"),
    ({**CALL, "idempotencyKey": "x" * 256}, "idempotencyKey", "at most 255"),
    ([], "", "must be an object"),
]


@each("sent, path, words", BAD_CALLS)
def test_bad_call_is_refused_by_field(server: Served, sent: Any, path: str, words: str) -> None:
    found = bad_fields(server.client.post(CALLS, json=sent))
    assert list(found) == [path]
    assert words in found[path]
    assert server.agent.commands == []


def test_all_bad_fields_are_named(server: Served) -> None:
    sent = {
        "name": "",
        "requestSpec": {"method": "?", "url": "x", "headers": {" ": "", "a\n": ""}},
        "dueAt": "x",
        "tags": ["", ""],
        "serviceCallId": "x",
        "idempotencyKey": "",
    }
    answer = server.client.post(CALLS.replace(TENANT, "x"), json=sent)
    assert [bad["path"] for bad in refused(answer, 400, "INVALID_INPUT")["errors"]] == [
        *("tenantId", "name", "requestSpec.url", "requestSpec.method", "requestSpec.headers", "requestSpec.headers"),
        *("dueAt", "tags[0]", "tags[1]", "serviceCallId", "idempotencyKey"),
    ]


BAD_QUERIES = [
    ("page=2", "page", "parameters are: status, tag, name, correlationId, from, to, limit, cursor"),
    ("Status=Running", "Status", "is not a query parameter"),
    ("limit=1&limit=2", "limit", "give it once"),
    ("from=2027-01-31T12:00:00Z&from=2027-01-31T12:00:00Z", "from", "give it once"),
    ("status=running", "status", "Scheduled, Running, Retrying, Succeeded, Failed"),
    ("status=Running,", "status", "Scheduled, Running, Retrying, Succeeded, Failed"),
    ("status=", "status", "Scheduled, Running, Retrying, Succeeded, Failed"),
    ("tag=", "tag", "is empty"),
    ("tag=a%00b", "tag", "control characters"),
    ("tag=" + "x" * 65, "tag", "at most 64"),
    ("&".join(f"tag={number}" for number in range(17)), "tag", "a call has at most 16"),
    ("from=2027-01-31T12:00:00", "from", "no time zone"),
    ("to=yesterday", "to", "RFC 3339"),
    ("to=", "to", "RFC 3339"),
    ("limit=0", "limit", "1 to 1000"),
    ("limit=1001", "limit", "1 to 1000"),
    ("limit=-1", "limit", "1 to 1000"),
    ("limit=1e2", "limit", "1 to 1000"),
    ("limit=%D9%A3", "limit", "1 to 1000"),
    ("limit=" + "9" * 5_000, "limit", "1 to 1000"),
    ("limit=", "limit", "1 to 1000"),
    ("cursor=", "cursor", "nextCursor"),
    ("cursor=abc", "cursor", "nextCursor"),
    ("cursor=" + "A" * 34, "cursor", "nextCursor"),
    ("cursor=AX_______________________________8", "cursor", "nextCursor"),
    ("tag=%FF", "", "not percent-encoded UTF-8"),
]


@each("query, path, words", BAD_QUERIES)
def test_bad_query_is_refused_by_name(server: Served, query: str, path: str, words: str) -> None:
    found = bad_fields(server.client.get(f"{CALLS}?{query}"))
    assert list(found) == [path]
    assert words in found[path]


@each("method, path, body, role", ROUTES)
def test_every_route_names_bad_ids(server: Served, method: str, path: str, body: Any, role: Role) -> None:
    found = bad_fields(server.client.request(method, path.replace(TENANT, "acme"), json=body))
    assert list(found) == ["tenantId"]
    if CALL_ID in path:
        found = bad_fields(server.client.request(method, path.replace(TENANT, "a").replace(CALL_ID, "b"), json=body))
        assert list(found) == ["tenantId", "serviceCallId"]
        found = bad_fields(server.client.request(method, path.replace(CALL_ID, "%FF"), json=body))
        assert list(found) == ["serviceCallId"]


@each("method, path, body, role", [route for route in ROUTES if route[1] != CALLS])
def test_every_other_route_takes_no_query(server: Served, method: str, path: str, body: Any, role: Role) -> None:
    found = bad_fields(server.client.request(method, path + "?x=1", json=body))
    assert found == {"x": "is not a query parameter here; there are none"}


BAD_TAGS = [("x" * 65, "at most 64"), ("a%00", "control"), ("%FF", "not percent-encoded UTF-8")]


@each("method", ["PUT", "DELETE"])
@each("tag, words", BAD_TAGS)
def test_bad_tag_in_the_path(server: Served, method: str, tag: str, words: str) -> None:
    found = bad_fields(server.client.request(method, f"{CALLS}/{CALL_ID}/tags/{tag}"))
    assert list(found) == ["tag"]
    assert words in found["tag"]


# ------------------------------------------------------------------ transport


def test_a_submit_body_must_be_json(server: Served) -> None:
    refused(server.client.post(CALLS, content=b"{", headers=JSON), 400, "MALFORMED_BODY")
    refused(server.client.post(CALLS, content=b"", headers=JSON), 400, "MALFORMED_BODY")
    refused(server.client.post(CALLS, content=b"{}"), 415, "UNSUPPORTED_MEDIA_TYPE")
    refused(server.client.post(CALLS, data={"name": "x"}), 415, "UNSUPPORTED_MEDIA_TYPE")
    refused(server.client.post(CALLS, content=b'{"name":"\xff"}', headers=JSON), 400, "MALFORMED_BODY")
    lone = json.dumps(spec(body="\ud800"))
    refused(server.client.post(CALLS, content=lone, headers=JSON), 400, "MALFORMED_BODY")
    deep = json.dumps(CALL).replace('"first"', "[" * 50_000 + "]" * 50_000)
    assert server.client.post(CALLS, content=deep, headers=JSON).status_code == 400
    assert server.agent.commands == []


def test_sizes(server: Served) -> None:
    fits = "x" * 102_400
    assert server.client.post(CALLS, json=spec(body=fits)).status_code == 202
    problem = refused(server.client.post(CALLS, json=spec(body=fits + "x")), 413, "PAYLOAD_TOO_LARGE")
    assert [bad["path"] for bad in problem["errors"]] == ["requestSpec.body"]
    # As it goes out: escapes in a string don't count, quotes of other JSON do.
    assert server.client.post(CALLS, json=spec(body="ä" * 51_200)).status_code == 202
    refused(server.client.post(CALLS, json=spec(body=[fits])), 413, "PAYLOAD_TOO_LARGE")
    found = bad_fields(server.client.post(CALLS, json={**spec(body=fits + "x"), "name": ""}))
    assert set(found) == {"name", "requestSpec.body"}
    refused(server.client.post(CALLS, content=b" " * 300_000, headers=JSON), 413, "BODY_TOO_LARGE")


def test_unknown_methods_are_refused(server: Served) -> None:
    for path, allowed in (
        (CALLS, "POST, GET, HEAD"),
        (f"{CALLS}/{CALL_ID}", "GET, HEAD, DELETE"),
        (f"{CALLS}/{CALL_ID}/trace", "GET, HEAD"),
        (f"{CALLS}/{CALL_ID}/tags/a", "PUT, DELETE"),
    ):
        for method in {"POST", "GET", "PUT", "DELETE", "PATCH", "OPTIONS"} - set(allowed.split(", ")):
            answer = server.client.request(method, path)
            refused(answer, 405, "METHOD_NOT_ALLOWED")
            assert answer.headers["allow"] == allowed


@each(
    "path",
    [
        "/api/v1/tenants",
        f"/api/v1/tenants/{TENANT}",
        f"/api/tenants/{TENANT}",
        f"{CALLS}/",
        f"{CALLS}/{CALL_ID}/",
        f"{CALLS}/{CALL_ID}/tags",
        f"{CALLS}/{CALL_ID}/tags/",
        f"{CALLS}/{CALL_ID}/tags/a/b",
        f"{CALLS}/{CALL_ID}/traces",
        "/api/v1/tenants//service-calls",
    ],
)
def test_unknown_paths_are_not_found(server: Served, path: str) -> None:
    refused(server.client.get(path), 404, "ROUTE_NOT_FOUND")


@pytest.mark.parametrize(
    ("header", "field", "reason"),
    [("other", "idempotencyKey", "differs from the header"), ("a b", "Idempotency-Key", "visible ASCII")],
)
def test_an_idempotency_key_in_the_header_is_checked(server: Served, header: str, field: str, reason: str) -> None:
    answer = server.client.post(CALLS, json={**CALL, "idempotencyKey": "k"}, headers={"idempotency-key": header})
    assert reason in bad_fields(answer)[field]
    assert server.agent.commands == []


# ------------------------------------------------------------------ what isn't there, and what fails


@each(
    "fault, status, error",
    [
        (BusOverloaded("5000 messages wait"), 429, "OVERLOADED"),
        (BusUnavailable("no connection"), 503, "BROKER_UNAVAILABLE"),
        (RequestUnanswered("no reply after 10s"), 503, "COMMAND_UNANSWERED"),
        (Unavailable("the responder failed"), 503, "SHARD_UNAVAILABLE"),
    ],
)
@each("method, path, body", COMMANDS)
def test_a_command_without_reply_is_unavailable(
    server: Served, method: str, path: str, body: Any, fault: Exception, status: int, error: str
) -> None:
    server.agent.fault = fault
    answer = server.client.request(method, path, json=body)
    assert refused(answer, status, error)["detail"] == str(fault)
    assert answer.headers["retry-after"] == "1"


@each("method, path, body", READS)
def test_an_unavailable_store_is_reported(server: Served, method: str, path: str, body: Any) -> None:
    server.agent.fault = StoreUnavailable("secret detail")
    answer = server.client.request(method, path, json=body)
    assert "secret" not in refused(answer, 503, "STORE_FAILURE")["detail"]
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize(("method", "path", "body"), COMMANDS)
def test_an_unexpected_reply_is_an_internal_error(
    server: Served, method: str, path: str, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.agent.reply = CommandRefused(CALL_ID, "WHAT_IS_THIS", "secret")
    answer = server.client.request(method, path, json=body)
    assert "secret" not in refused(answer, 500, "INTERNAL")["detail"]
    assert "WHAT_IS_THIS" in caplog.text


# ------------------------------------------------------------------ access


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys(required=True)


@pytest.fixture(scope="module")
def guarded_server(serve: Callable[..., Served], keys: Keys) -> Served:
    return serve(keys=keys)


@pytest.fixture
def guarded(guarded_server: Served) -> Served:
    guarded_server.agent.clear()
    return guarded_server


def statuses(server: Served, headers: dict[str, str]) -> list[int]:
    server.agent.clear()
    return [
        server.client.request(method, path, json=body, headers=headers).status_code for method, path, body, _ in ROUTES
    ]


DONE = [202, 200, 200, 200, 204, 204, 204]


@each("headers", [{}, {"authorization": "Bearer wrong"}])
@each("method, path, body, role", ROUTES)
def test_requests_without_a_valid_key_have_no_effect(
    guarded: Served, method: str, path: str, body: Any, role: Role, headers: dict[str, str]
) -> None:
    refused(guarded.client.request(method, path, json=body, headers=headers), 401, "UNAUTHENTICATED")
    assert guarded.agent.commands == []


def test_keys_have_access_only_to_their_tenants(guarded: Served, keys: Keys) -> None:
    assert statuses(guarded, keys.add("w", Role.WRITE)) == DONE
    assert statuses(guarded, keys.add("t", Role.WRITE, tenants=(OTHER, TENANT))) == DONE
    assert statuses(guarded, keys.add("T", Role.WRITE, tenants=(TENANT.upper(),))) == DONE
    assert statuses(guarded, keys.add("both", Role.ADMIN, "default", tenants=(TENANT,))) == DONE
    assert statuses(guarded, keys.add("o", Role.ADMIN, tenants=(OTHER,))) == [403] * 7
    assert statuses(guarded, keys.add("n", Role.ADMIN, "default")) == [403] * 7
    assert statuses(guarded, keys.add("r", Role.READ)) == [403, 200, 404, 404, 403, 403, 403]
    assert statuses(guarded, keys.add("tr", Role.READ, tenants=(TENANT,))) == [403, 200, 404, 404, 403, 403, 403]


def test_a_key_limited_to_a_tenant_has_no_access_to_namespaces(guarded: Served, keys: Keys) -> None:
    timer = {"namespace": "default", "id": "t", "delay": "1h", "callbackUrl": "https://a.example/"}
    headers = keys.add("t-only", Role.ADMIN, tenants=(TENANT,))
    refused(guarded.client.post("/api/v1/timers/create", json=timer, headers=headers), 403, "FORBIDDEN")
    refused(guarded.client.get("/api/v1/cluster", headers=headers), 403, "FORBIDDEN")


def test_a_key_is_refused_before_the_body_is_parsed(guarded: Served, keys: Keys) -> None:
    headers = keys.add("o2", Role.WRITE, tenants=(OTHER,))
    problem = refused(guarded.client.post(CALLS, content=b"{", headers={**headers, **JSON}), 403, "FORBIDDEN")
    assert problem["detail"] == "this key has no access to this tenant"
    refused(guarded.client.get(CALLS.replace(TENANT, "x"), headers=headers), 403, "FORBIDDEN")


# ------------------------------------------------------------------ switched off


def test_paths_of_a_disabled_agent_are_not_found(serve: Callable[..., Served]) -> None:
    server = serve(agent=False)
    for method, path, body, _ in ROUTES:
        problem = refused(server.client.request(method, path, json=body), 404, "ROUTE_NOT_FOUND")
        assert "service agent is disabled" in problem["detail"]
    refused(server.client.patch(CALLS), 404, "ROUTE_NOT_FOUND")
