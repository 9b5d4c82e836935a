"""`tocsin calls` against a scripted server: requests, output, failures."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.integration.cli.conftest import answer, problem
from tocsin.cli.receiver import ReceiverResponse
from tocsin.model.ids import is_uuid7

TENANT = "01985a3e-0000-7000-8000-000000000001"
CALL = "01985a3e-0000-7000-8000-0000000000aa"
EXECUTION = "01985a3e-0000-7000-8000-0000000000bb"
CORRELATION = "01985a3e-0000-7000-8000-0000000000cc"
HOOK = "http://hook.example/x"
PATH = f"/api/v1/tenants/{TENANT}/service-calls"
SUBMITTED = answer({"serviceCallId": CALL, "status": "Scheduled", "correlationId": CORRELATION}, 202)


def call(status, **fields):
    return {
        "serviceCallId": CALL,
        "tenantId": TENANT,
        "name": "tea",
        "status": status,
        "submittedAt": "2026-01-01T00:00:00Z",
        "dueAt": "2026-01-01T00:00:05Z",
        "tags": ["kitchen"],
        "correlationId": CORRELATION,
        "requestSpec": {"method": "POST", "url": HOOK, "headers": {"authorization": "[redacted]"}, "body": {"cups": 2}},
        **fields,
    }


SUCCEEDED = call(
    "Succeeded",
    startedAt="2026-01-01T00:00:05.004Z",
    finishedAt="2026-01-01T00:00:05.029Z",
    outcome={"responseMeta": {"status": 200, "headers": {}, "bodySnippet": "served", "latencyMs": 24.5}},
    executions=[
        {
            "executionId": EXECUTION,
            "startedAt": "2026-01-01T00:00:05.004Z",
            "finishedAt": "2026-01-01T00:00:05.029Z",
            "request": {"method": "POST", "url": HOOK, "headers": {}},
            "response": {"status": 200, "headers": {}, "body": "served"},
        }
    ],
)
FAILED = call(
    "Failed",
    finishedAt="2026-01-01T00:00:06Z",
    outcome={"errorMeta": {"kind": "HTTP_STATUS", "message": "HTTP 503", "latencyMs": 3.0}},
)


@pytest.fixture
def calls(tocsin, scripted, monkeypatch):
    """Runs `tocsin calls` for the tenant against the scripted server."""
    monkeypatch.setenv("TOCSIN_URL", scripted.url)
    monkeypatch.setenv("TOCSIN_TENANT", TENANT)
    return lambda *arguments: tocsin("calls", *arguments)


def sent(scripted, index=-1):
    request = scripted.received[index]
    return request.method, request.path, msgspec.json.decode(request.body) if request.body else None


class TestTenant:
    def test_a_missing_tenant_explains_how_to_create_one(self, tocsin):
        ran = tocsin("calls", "list")
        assert (ran.code, ran.out) == (2, "")
        assert "export TOCSIN_TENANT=$(tocsin calls new-tenant)" in ran.err

    def test_a_tenant_that_is_not_a_uuid7_is_refused(self, tocsin):
        ran = tocsin("calls", "list", "--tenant", "6d1a1f1e-0000-4000-8000-000000000000")
        assert ran.code == 2
        assert "not a UUID v7" in ran.err

    def test_new_tenants_are_unique(self, tocsin):
        made = {tocsin("calls", "new-tenant").out.strip() for _ in range(3)}
        assert len(made) == 3
        assert all(map(is_uuid7, made))


class TestSubmit:
    def test_sends_the_request(self, calls, scripted):
        scripted.script = [SUBMITTED]
        ran = calls(
            "submit", "tea", HOOK, "--at", "2027-01-31T14:00:00+02:00", "--body", '{"cups": 2.50}', "-H", "X-One: 1",
            "--tag", "kitchen", "--flow-key", "vendor", "--id", CALL, "--credential", "pay",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        assert sent(scripted) == (
            "POST",
            PATH,
            {
                "name": "tea",
                "requestSpec": {
                    "method": "POST",
                    "url": HOOK,
                    "headers": {"X-One": "1"},
                    "body": {"cups": 2.5},
                    "credential": "pay",
                },
                "dueAt": "2027-01-31T12:00:00Z",
                "tags": ["kitchen"],
                "flowKey": "vendor",
                "serviceCallId": CALL,
            },
        )
        assert b"2.50" in scripted.received[-1].body, "the body travels as it was written"
        assert CALL in ran.out
        assert "Scheduled" in ran.out

    def test_without_a_body_it_is_a_get_due_now(self, calls, scripted):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK).code == 0
        _, _, body = sent(scripted)
        assert body["requestSpec"] == {"method": "GET", "url": HOOK}
        assert "dueAt" not in body

    @pytest.mark.parametrize(
        ("options", "policy"),
        [
            (["--retry"], {}),
            (["--retry", "--retry-attempts", "3"], {"maxAttempts": 3}),
            (["--retry-for", "1h", "--retry-initial", "2s"], {"maxAttemptsDuration": "1h", "initialInterval": "2s"}),
        ],
    )
    def test_a_delay_and_a_retry_policy(self, calls, scripted, options, policy):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK, "--in", "30s", *options).code == 0
        _, _, body = sent(scripted)
        assert body["requestSpec"] == {"method": "GET", "url": HOOK, "retryPolicy": policy}
        assert body["delay"] == "30s"

    def test_waits_for_retries(self, calls, scripted, monkeypatch):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        retrying = call("Retrying", attempts=1, nextAttemptAt="2026-01-01T00:00:10Z")
        scripted.script = [SUBMITTED, answer(retrying), answer(SUCCEEDED)]
        ran = calls("submit", "tea", HOOK, "--retry", "--wait")
        assert ran.code == 0, ran.err
        assert "Retrying, due" in ran.err

    def test_a_retry_after_503_submits_the_same_call(self, calls, scripted, monkeypatch):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        scripted.script = [problem(503, "COMMAND_UNANSWERED"), SUBMITTED]
        assert calls("submit", "tea", HOOK).code == 0
        (_, _, first), (_, _, second) = sent(scripted, 0), sent(scripted, 1)
        assert first == second
        assert is_uuid7(first["serviceCallId"])

    def test_an_idempotency_key_replaces_the_id(self, calls, scripted):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK, "--idempotency-key", "order-17").code == 0
        _, _, body = sent(scripted)
        assert body["idempotencyKey"] == "order-17"
        assert "serviceCallId" not in body

    def test_quiet_prints_only_the_id(self, calls, scripted):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK, "-q").out == CALL + "\n"

    def test_json(self, calls, scripted):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK, "--json").json() == msgspec.json.decode(SUBMITTED.body)

    def test_waits_until_it_succeeded(self, calls, scripted):
        scripted.script = [SUBMITTED, answer(call("Scheduled")), answer(call("Running")), answer(SUCCEEDED)]
        ran = calls("submit", "tea", HOOK, "--wait")
        assert ran.code == 0, ran.err
        assert ran.err.index("Scheduled") < ran.err.index("Running")
        assert "200 in 24.5 ms" in ran.out
        assert "served" in ran.out
        assert EXECUTION in ran.out

    @pytest.mark.parametrize("form", [[], ["--json"], ["-q"]])
    def test_a_failed_call_is_a_failure(self, calls, scripted, form):
        scripted.script = [SUBMITTED, answer(FAILED)]
        ran = calls("submit", "tea", HOOK, "--wait", *form)
        assert ran.code == 1
        assert "the call failed: HTTP_STATUS: HTTP 503" in ran.err
        if form == ["--json"]:
            assert ran.json() == FAILED

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--at", "2027-01-01T00:00:00Z", "--in", "1s"], "--at and --in conflict"),
            (["--in", "soon"], "--in: 'soon' is not a duration"),
            (["--body", "hello"], """quote a plain text: '"hello"'"""),
            (["--id", "seventeen"], "not a UUID v7"),
            (["-H", "nonsense"], "write it as 'Name: value'"),
        ],
    )
    def test_usage_errors_name_the_option_and_the_remedy(self, calls, scripted, arguments, message):
        ran = calls("submit", "tea", HOOK, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert not scripted.received

    def test_refusals_name_the_field(self, calls, scripted):
        errors = [{"path": "requestSpec.url", "reason": "is no URL; begin with http:// or https://"}]
        scripted.script = [problem(400, "INVALID_INPUT", "…", errors=errors)]
        ran = calls("submit", "tea", "x")
        assert ran.code == 1
        assert "INVALID_INPUT\n  requestSpec.url: is no URL" in ran.err


class TestGet:
    def test_shows_outcome_lag_and_executions(self, calls, scripted):
        scripted.script = [answer(SUCCEEDED)]
        ran = calls("get", CALL.upper())
        assert ran.code == 0, ran.err
        assert sent(scripted) == ("GET", f"{PATH}/{CALL}", None)
        for text in ("200 in 24.5 ms", "+4.0 ms", "25.0 ms", "[redacted]", '{"cups":2}', EXECUTION, CORRELATION):
            assert text in ran.out, text

    def test_shows_the_flow_that_it_waits_for(self, calls, scripted):
        scripted.script = [answer({**SUCCEEDED, "status": "Running", "flowKey": "vendor", "waitsFor": "flow"})]
        ran = calls("get", CALL)
        assert re.search(r"flowKey +vendor", ran.out), ran.out
        assert re.search(r"waitsFor +flow", ran.out), ran.out

    def test_a_failed_call_can_be_shown(self, calls, scripted):
        scripted.script = [answer(FAILED)]
        ran = calls("get", CALL)
        assert ran.code == 0
        assert "HTTP_STATUS: HTTP 503" in ran.out

    def test_an_unknown_call_is_refused(self, calls, scripted):
        scripted.script = [problem(404, "SERVICE_CALL_NOT_FOUND", "no such call")]
        ran = calls("get", CALL)
        assert ran.code == 1
        assert "SERVICE_CALL_NOT_FOUND: no such call" in ran.err

    def test_trace_is_indented_by_causes_even_within_one_instant(self, calls, scripted):
        at = "2026-01-01T00:00:00Z"
        entries = [
            {"at": at, "kind": "service_calls", "name": "tea", "id": CALL, "detail": {"status": "Running"}},
            {"at": at, "kind": "message", "name": "ExecutionStarted", "id": "m3", "causationId": "m2", "detail": {}},
            {"at": at, "kind": "message", "name": "StartExecution", "id": "m2", "causationId": "m1", "detail": {}},
            {"at": at, "kind": "message", "name": "ServiceCallSubmitted", "id": "m1", "causationId": "c", "detail": {}},
            {
                "at": "2026-01-01T00:00:00.0125Z", "kind": "message", "name": "Odd", "id": "m4", "causationId": "m4",
                "detail": {
                    "a": {"b": 1}, "none": None, "serviceCallId": CALL, "tenantId": TENANT,
                    "dueAt": "1970-01-01T00:00:01.5Z",
                },
            },
        ]  # fmt: skip
        trace = {"serviceCallId": CALL, "correlationId": CORRELATION, "entries": entries}
        scripted.script = [answer(trace), answer(trace)]
        ran = calls("get", CALL, "--trace")
        assert ran.code == 0, ran.err
        assert scripted.received[-1].path == f"{PATH}/{CALL}/trace"
        indents = {name: line.index(name) for line in ran.out.splitlines() for name in line.split() if name.isalpha()}
        assert indents["ExecutionStarted"] - indents["StartExecution"] == 2
        assert indents["StartExecution"] - indents["ServiceCallSubmitted"] == 2
        assert indents["ServiceCallSubmitted"] == indents["tea"]
        assert "+12.5 ms" in ran.out
        assert 'a={"b":1}  dueAt=00:00:01.5Z' in ran.out
        assert calls("get", CALL, "--trace", "--json").json() == trace

    def test_an_empty_trace(self, calls, scripted):
        scripted.script = [answer({"serviceCallId": CALL, "correlationId": CORRELATION, "entries": []})]
        assert calls("get", CALL, "--trace").code == 0


class TestList:
    def test_filters_are_sent_and_the_table_shows_the_cursor(self, calls, scripted):
        scripted.script = [answer({"serviceCalls": [SUCCEEDED, FAILED], "nextCursor": "c/1"})]
        ran = calls(
            "list", "--status", "failed", "--status", "Succeeded", "--tag", "a b", "--from", "2026-01-01T01:00:00+01:00",
            "--limit", "2",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        query = "status=Failed&status=Succeeded&tag=a+b&from=2026-01-01T00%3A00%3A00Z&limit=2"
        assert scripted.received[-1].path == f"{PATH}?{query}"
        assert ran.out.count(CALL) == 2
        assert "HTTP_STATUS" in ran.out
        assert "--cursor c/1, or --all" in ran.err

    def test_all_follows_the_pages(self, calls, scripted):
        pages = [answer({"serviceCalls": [SUCCEEDED] * 2, "nextCursor": "n"}), answer({"serviceCalls": [FAILED]})]
        scripted.script = list(pages)
        ran = calls("list", "--all", "--json")
        assert [msgspec.json.decode(line)["status"] for line in ran.out.splitlines()] == ["Succeeded"] * 2 + ["Failed"]
        assert scripted.received[-1].path == f"{PATH}?limit=1000&cursor=n"
        scripted.script = list(pages)
        assert calls("list", "--all").out.count(CALL) == 3

    def test_json_is_the_page(self, calls, scripted):
        scripted.script = [answer({"serviceCalls": []})]
        assert calls("list", "--json").json() == {"serviceCalls": []}


class TestChanges:
    def test_tag_and_untag(self, calls, scripted):
        scripted.script = [ReceiverResponse(204), ReceiverResponse(204)]
        assert calls("tag", CALL, "a/b ü").code == 0
        assert sent(scripted) == ("PUT", f"{PATH}/{CALL}/tags/a%2Fb%20%C3%BC", None)
        assert calls("untag", CALL, "starred").code == 0
        assert sent(scripted) == ("DELETE", f"{PATH}/{CALL}/tags/starred", None)

    def test_delete_continues_after_a_refusal(self, calls, scripted):
        scripted.script = [problem(409, "SERVICE_CALL_NOT_SCHEDULED", "it has finished"), ReceiverResponse(204)]
        other = CALL[:-1] + "b"
        ran = calls("delete", CALL, other)
        assert ran.code == 1
        assert f"{CALL}: SERVICE_CALL_NOT_SCHEDULED" in ran.err
        assert f"{other} is deleted" in ran.err

    def test_retry_continues_after_a_refusal(self, calls, scripted):
        scripted.script = [problem(409, "SERVICE_CALL_NOT_FAILED", "it is Succeeded"), ReceiverResponse(204)]
        other = CALL[:-1] + "b"
        ran = calls("retry", CALL, other)
        assert ran.code == 1
        assert f"{CALL}: SERVICE_CALL_NOT_FAILED" in ran.err
        assert f"{other} is attempted again" in ran.err
        assert sent(scripted)[:2] == ("POST", f"{PATH}/{other}/retry")

    def test_hooks_of_a_submission(self, calls, scripted):
        scripted.script = [SUBMITTED]
        assert calls("submit", "tea", HOOK, "--on-failure", "http://alerts.example/").code == 0
        body = sent(scripted)[2]
        assert (body["onFailure"], "onSuccess" in body) == ({"url": "http://alerts.example/"}, False)


class TestHostileText:
    HOSTILE = "\x1b[2J\x9b\u202e[bold]"

    def steers(self, text):
        return any(letter in text for letter in "\x1b\x9b\u202e") or "[bold]" not in text

    def test_control_characters_of_a_response_are_escaped(self, calls, scripted):
        hostile, emoji = self.HOSTILE, "👩\u200d💻"
        failed = call(
            "Failed" + hostile,
            name=emoji + hostile,
            tags=[hostile],
            finishedAt="2026-01-01T00:00:06Z",
            outcome={
                "responseMeta": {"status": 500, "headers": {}, "bodySnippet": hostile, "latencyMs": 1.0},
                "errorMeta": {"kind": "HTTP" + hostile, "message": hostile, "latencyMs": 3.0},
            },
            executions=[
                {"executionId": EXECUTION + hostile, "startedAt": "2026-01-01T00:00:05Z", "errorMessage": hostile}
            ],
        )
        scripted.script = [answer(failed), answer({"serviceCalls": [failed | {"serviceCallId": hostile}]})]
        for ran in (calls("get", CALL), calls("list")):
            assert ran.code == 0
            assert not self.steers(ran.out)
            assert emoji in ran.out

    def test_control_characters_of_a_trace_are_escaped(self, calls, scripted):
        entry = {
            "at": "2026-01-01T00:00:05Z",
            "kind": "row" + self.HOSTILE,
            "name": self.HOSTILE,
            "detail": {"message" + self.HOSTILE: self.HOSTILE},
        }
        scripted.script = [answer({"serviceCallId": CALL, "correlationId": CORRELATION, "entries": [entry]})]
        ran = calls("get", CALL, "--trace")
        assert ran.code == 0
        assert not self.steers(ran.out)
