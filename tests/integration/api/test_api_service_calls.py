"""The operations on service calls over HTTP: valid requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from api_server import Served
from tests.support.cases import each

from tocsin.model.ids import is_uuid7
from tocsin.service_calls.messages import CallKey, SubmitServiceCall
from tocsin.service_calls.ports import ExecutionRecord, TraceEntry

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
OTHER = "01890a5d-ac96-774b-bcce-b302099a80ff"
CALL_ID = "01890a5d-ac96-774b-bcce-b302099a8058"
CALLS = f"/api/v1/tenants/{TENANT}/service-calls"
SPEC: dict[str, Any] = {"method": "POST", "url": "https://a.example/x"}
CALL: dict[str, Any] = {"name": "first", "requestSpec": SPEC}


def submit(server: Served, *, calls: str = CALLS, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    answer = server.client.post(calls, json={**CALL, **fields}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


def listed(server: Served, query: str = "", calls: str = CALLS) -> list[str]:
    answer = server.client.get(f"{calls}?{query}" if query else calls)
    assert answer.status_code == 200, answer.text
    return [call["name"] for call in answer.json()["serviceCalls"]]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1e6)


# ------------------------------------------------------------------ submit


def test_submit_returns_the_location_of_the_call(server: Served) -> None:
    answer = server.client.post(CALLS, json=CALL, headers={"x-correlation-id": "c-17"})
    assert answer.status_code == 202
    body = answer.json()
    assert body == {"serviceCallId": body["serviceCallId"], "status": "Scheduled", "correlationId": "c-17"}
    assert is_uuid7(body["serviceCallId"])
    assert answer.headers["location"] == f"{CALLS}/{body['serviceCallId']}"
    assert answer.headers["content-type"] == "application/json"
    assert server.client.get(answer.headers["location"]).json()["name"] == "first"


def test_the_submit_command_contains_the_request(server: Served) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    submit(
        server,
        headers={"x-correlation-id": "c-18"},
        requestSpec={**SPEC, "headers": {"X-A": "b"}, "body": {"b": [1.50, None], "a": "ä"}},
        dueAt=due.isoformat(),
        tags=["b", "a"],
        idempotencyKey="order 17",
    )
    [(envelope, message)] = server.agent.commands
    assert (envelope.type, envelope.tenant_id, envelope.correlation_id) == ("SubmitServiceCall", TENANT, "c-18")
    assert envelope.causation_id is None
    assert isinstance(message, SubmitServiceCall)
    assert (message.name, message.tags, message.idempotency_key) == ("first", ("b", "a"), "order 17")
    assert message.due_at == at(due.isoformat())
    spec = message.request_spec
    assert (spec.method, spec.url, spec.headers) == ("POST", "https://a.example/x", {"X-A": "b"})
    assert bytes(spec.body) == '{"b":[1.5,null],"a":"ä"}'.encode()  # type: ignore[arg-type]


def test_upper_case_ids_are_stored_in_lower_case(server: Served) -> None:
    calls = CALLS.replace(TENANT, TENANT.upper())
    answer = server.client.post(calls, json={**CALL, "serviceCallId": CALL_ID.upper()})
    assert answer.json()["serviceCallId"] == CALL_ID
    assert answer.headers["location"] == f"{CALLS}/{CALL_ID}"
    shown = server.client.get(f"{calls}/{CALL_ID.upper()}").json()
    assert (shown["tenantId"], shown["serviceCallId"]) == (TENANT, CALL_ID)
    assert listed(server, calls=calls) == ["first"]


@pytest.mark.parametrize("header", ["order-17", '"order-17"'])
def test_the_header_idempotency_key_makes_a_submit_safe_to_repeat(server: Served, header: str) -> None:
    key = {"idempotency-key": header}
    first = server.client.post(CALLS, json=CALL, headers=key)
    second = server.client.post(CALLS, json=CALL, headers=key)
    third = server.client.post(CALLS, json={**CALL, "idempotencyKey": "order-17"})
    assert [each.status_code for each in (first, second, third)] == [202] * 3
    assert first.json() == second.json() == third.json()
    assert first.headers["location"] == second.headers["location"] == third.headers["location"]
    assert [each.headers.get("idempotency-replayed") for each in (first, second, third)] == [None, "true", "true"]
    conflict = server.client.post(CALLS, json={**CALL, "name": "other"}, headers=key)
    assert (conflict.status_code, conflict.json()["error"]) == (409, "IDEMPOTENCY_CONFLICT")
    assert listed(server) == ["first"]


@pytest.mark.parametrize("root", ["/api/v1", "/api"])
def test_calls_are_served_with_and_without_the_version_in_the_path(server: Served, root: str) -> None:
    calls = f"{root}/tenants/{TENANT}/service-calls"
    answer = server.client.post(calls, json={**CALL, "serviceCallId": CALL_ID})
    assert answer.headers["location"] == f"{calls}/{CALL_ID}"
    assert server.client.put(f"{calls}/{CALL_ID}/tags/star").status_code == 204
    for other in ("/api/v1", "/api"):
        assert server.client.get(f"{other}/tenants/{TENANT}/service-calls/{CALL_ID}").json()["tags"] == ["star"]


# ------------------------------------------------------------------ look


def test_a_call_is_shown_with_its_outcome_and_executions(server: Served) -> None:
    submit(
        server,
        serviceCallId=CALL_ID,
        headers={"x-correlation-id": "c"},
        tags=["b", "a"],
        requestSpec={
            "method": "PUT",
            "url": "https://a.example/x?q=1&access_token=hidden",
            "headers": {"Authorization": "Bearer hidden", "x-own": "Basic aGlkZGVu", "x-b": "c"},
            "body": {"a": 1},
        },
    )
    key = CallKey(TENANT, CALL_ID)
    instant, shown_at = 1_800_000_000_000_000, "2027-01-15T08:00:00Z"
    server.agent.change(
        key,
        status="Failed",
        submitted_at=instant,
        due_at=instant,
        started_at=instant + 1,
        finished_at=instant + 2,
        attempts=1,
        outcome={
            "responseMeta": {"status": 503, "headers": {"a": "b"}, "bodySnippet": "no", "latencyMs": 1.5},
            "errorMeta": {"kind": "HTTP_STATUS", "message": "HTTP 503", "latencyMs": 1.5},
        },
    )
    server.agent.runs[key] = [
        ExecutionRecord(
            CALL_ID, instant, None, "https://a/?sig=s", "PUT", {"Cookie": "s"}, None, None, None, None, None
        ),
        ExecutionRecord(
            *(OTHER, instant, instant + 5, "https://a/", "PUT", {}, "{}", 503, {"set-cookie": "s"}, "no", "HTTP 503")
        ),
    ]
    assert server.client.get(f"{CALLS}/{CALL_ID}").json() == {
        "serviceCallId": CALL_ID,
        "tenantId": TENANT,
        "name": "first",
        "status": "Failed",
        "submittedAt": shown_at,
        "dueAt": shown_at,
        "startedAt": "2027-01-15T08:00:00.000001Z",
        "finishedAt": "2027-01-15T08:00:00.000002Z",
        "tags": ["a", "b"],
        "correlationId": "c",
        "requestSpec": {
            "method": "PUT",
            "url": "https://a.example/x?q=1&access_token=[redacted]",
            "headers": {"Authorization": "[redacted]", "x-own": "[redacted]", "x-b": "c"},
            "body": {"a": 1},
        },
        "attempts": 1,
        "outcome": {
            "responseMeta": {
                "status": 503,
                "headers": {"a": "b"},
                "bodySnippet": "no",
                "truncated": False,
                "latencyMs": 1.5,
            },
            "errorMeta": {"kind": "HTTP_STATUS", "message": "HTTP 503", "latencyMs": 1.5},
        },
        "executions": [
            {
                "number": 1,
                "executionId": CALL_ID,
                "startedAt": shown_at,
                "request": {"method": "PUT", "url": "https://a/?sig=[redacted]", "headers": {"Cookie": "[redacted]"}},
            },
            {
                "number": 2,
                "executionId": OTHER,
                "startedAt": shown_at,
                "finishedAt": "2027-01-15T08:00:00.000005Z",
                "request": {"method": "PUT", "url": "https://a/", "headers": {}, "body": "{}"},
                "response": {"status": 503, "headers": {"set-cookie": "[redacted]"}, "body": "no"},
                "errorMessage": "HTTP 503",
            },
        ],
    }


def test_a_retrying_call_shows_its_policy_and_next_attempt(server: Served) -> None:
    submit(server, serviceCallId=CALL_ID, requestSpec={**SPEC, "retryPolicy": {"maxAttempts": 3}})
    server.agent.change(CallKey(TENANT, CALL_ID), status="Retrying", attempts=1, next_attempt_at=1_800_000_000_000_000)
    for shown in (
        server.client.get(f"{CALLS}/{CALL_ID}").json(),
        server.client.get(f"{CALLS}?status=Retrying").json()["serviceCalls"][0],
    ):
        assert (shown["status"], shown["attempts"]) == ("Retrying", 1)
        assert shown["nextAttemptAt"] == "2027-01-15T08:00:00Z"
    spec = server.client.get(f"{CALLS}/{CALL_ID}").json()["requestSpec"]
    policy = {"maxAttempts": 3, "initialInterval": "5s", "backoffMultiplier": 3.0, "maxInterval": "4h"}
    assert spec == {**SPEC, "headers": {}, "retryPolicy": policy}


def test_absent_fields_are_omitted(server: Served) -> None:
    submit(server, serviceCallId=CALL_ID)
    shown = server.client.get(f"{CALLS}/{CALL_ID}").json()
    assert shown["requestSpec"] == {**SPEC, "headers": {}}
    assert shown["executions"] == []
    assert not {"startedAt", "finishedAt", "outcome"} & shown.keys()


def test_a_list_contains_call_summaries(server: Served) -> None:
    submit(server, requestSpec={**SPEC, "headers": {"a": "b"}, "body": 1}, tags=["x"])
    [item] = server.client.get(CALLS).json()["serviceCalls"]
    assert item["requestSpec"] == SPEC
    assert item["tags"] == ["x"]
    assert "executions" not in item


def test_a_trace_lists_the_results_of_a_submit(server: Served) -> None:
    submit(server, serviceCallId=CALL_ID, headers={"x-correlation-id": "c"})
    server.agent.entries[CallKey(TENANT, CALL_ID)] = [
        TraceEntry(1_800_000_000_000_000, "message", "ServiceCallSubmitted", CALL_ID, OTHER, {"name": "first"}),
        TraceEntry(1_800_000_000_000_001, "timer_schedules", "Reached", CALL_ID, None, {}),
    ]
    assert server.client.get(f"{CALLS}/{CALL_ID}/trace").json() == {
        "serviceCallId": CALL_ID,
        "correlationId": "c",
        "entries": [
            {
                "at": "2027-01-15T08:00:00Z",
                "kind": "message",
                "name": "ServiceCallSubmitted",
                "id": CALL_ID,
                "causationId": OTHER,
                "detail": {"name": "first"},
            },
            {
                "at": "2027-01-15T08:00:00.000001Z",
                "kind": "timer_schedules",
                "name": "Reached",
                "id": CALL_ID,
                "detail": {},
            },
        ],
    }


# ------------------------------------------------------------------ list


def test_a_page_has_fifty_calls_by_default(server: Served) -> None:
    for _ in range(51):
        submit(server)
    page = server.client.get(CALLS).json()
    assert (len(page["serviceCalls"]), "nextCursor" in page) == (50, True)
    assert len(server.client.get(f"{CALLS}?limit=1000").json()["serviceCalls"]) == 51


# ------------------------------------------------------------------ tags, delete


@each("tag", ["starred", "a/b", "ü %", "a+b", "..", "100%", "a?b#c", "x" * 64])
def test_tags_are_added_and_removed(server: Served, tag: str) -> None:
    submit(server, serviceCallId=CALL_ID)
    # httpx would fold `..` away.
    path = f"{CALLS}/{CALL_ID}/tags/{quote(tag, safe='') if tag != '..' else '%2E%2E'}"
    for _ in range(2):
        answer = server.client.put(path)
        assert (answer.status_code, answer.content) == (204, b"")
        assert server.client.get(f"{CALLS}/{CALL_ID}").json()["tags"] == [tag]
    for _ in range(2):
        assert server.client.delete(path).status_code == 204
        assert server.client.get(f"{CALLS}/{CALL_ID}").json()["tags"] == []


# ------------------------------------------------------------------ every way in
