"""Service calls as pages show them: forms, filters, traces, statistics."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from tests.support.cases import each

from tocsin.http_client import plain
from tocsin.model.access import ApiKey, Role
from tocsin.model.errors import InvalidInput
from tocsin.model.explanation import WaitsFor
from tocsin.model.retry import RetryPolicy
from tocsin.service_calls.events import CommandHandled, ExecutionFinished, ServiceCallChanged
from tocsin.service_calls.messages import RequestSpec
from tocsin.service_calls.ports import CallRecord, TraceEntry
from tocsin.statistics.counting import CallStatistics, Statistics
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.slots import failing_place
from tocsin.web.pages.admin.sessions import Principal
from tocsin.web.pages.calls import presentation
from tocsin.web.pages.calls.detail import DEPTH_MAX, timeline, trace_lines
from tocsin.web.pages.calls.forms import METHODS, CallForm, command
from tocsin.web.pages.calls.listing import CallFilters
from tocsin.web.pages.context import Fields
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.presentation import State

NOW = 1_900_000_000_000_000
SECOND = 1_000_000
TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
ID = "01890a5d-ac96-774b-bcce-b302099a8058"


def record(**fields: Any) -> CallRecord:
    spec = RequestSpec("POST", "http://127.0.0.1:9/", {"Authorization": "Bearer x", "X-Shop": "eu"})
    usual = CallRecord(TENANT, ID, "one", "Scheduled", NOW, NOW + SECOND, None, None, spec, None, "c", ())
    return usual._replace(**fields)


def form(**fields: Any) -> CallForm:
    return CallForm(**{"tenant": TENANT, "name": "one", "url": "http://127.0.0.1:9/", **fields})


# -- forms


def test_form_offers_every_method_that_a_call_can_have() -> None:
    assert set(METHODS) == set(plain.METHODS)


def test_form_converts_to_the_equivalent_api_request() -> None:
    request = form(body='{"a": 1.10}', tags="x, y,,", headers=[("A", "b")], when="in", delay="5 m").request(NOW)
    assert msgspec.json.decode(msgspec.json.encode(request)) == {
        "name": "one",
        "requestSpec": {"method": "POST", "url": "http://127.0.0.1:9/", "headers": {"A": "b"}, "body": {"a": 1.1}},
        "dueAt": "2030-03-17T17:51:40Z",
        "tags": ["x", "y"],
    }
    assert bytes(request["requestSpec"]["body"]) == b'{"a": 1.10}'
    assert form().request(NOW) == {"name": "one", "requestSpec": {"method": "POST", "url": "http://127.0.0.1:9/"}}
    assert form(name="", url="https://a.example/b?token=x").request(NOW)["name"] == "POST a.example/b"


def test_form_reports_all_invalid_fields_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        form(body="{", when="in", delay="soon", headers=[("A", "b"), ("A", "c")]).request(NOW)
    assert {error.path for error in refused.value.errors} == {"requestSpec.body", "requestSpec.headers", "delay"}


def test_copied_call_requires_its_secrets_again() -> None:
    spec = RequestSpec("PUT", "http://a.example/?token=t&n=1", {"Authorization": "Bearer x", "X-Shop": "eu"})
    copy = CallForm.like(record(request_spec=spec, tags=("eu", "star")), ID)
    assert copy.headers == [("Authorization", ""), ("X-Shop", "eu")]
    assert (copy.method, copy.tags, copy.when) == ("PUT", "eu", "now")
    assert "=t&" not in copy.url
    with pytest.raises(InvalidInput) as refused:
        copy.request(NOW)
    assert {error.path for error in refused.value.errors} == {"requestSpec.headers", "requestSpec.url"}
    copy.url, copy.headers[0] = "http://a.example/", ("Authorization", "Bearer y")
    assert copy.request(NOW)["requestSpec"]["headers"] == {"Authorization": "Bearer y", "X-Shop": "eu"}


def test_call_form_has_retries_off_by_default() -> None:
    assert "retryPolicy" not in form().request(NOW)["requestSpec"]
    chosen = form(retry=True, attempts="3", max_interval="1 h", max_duration="2d")
    policy = chosen.request(NOW)["requestSpec"]["retryPolicy"]
    assert policy == {
        "maxAttempts": 3,
        "initialInterval": "5s",
        "backoffMultiplier": 3.0,
        "maxInterval": "1h",
        "maxAttemptsDuration": "2d",
    }
    assert "--retry-attempts 3" in command("http://h:1", TENANT, chosen.request(NOW), chosen)
    with pytest.raises(InvalidInput, match="maxAttempts"):
        form(retry=True, attempts="many").request(NOW)
    copy = CallForm.like(record(retry_policy=RetryPolicy(max_attempts=7)), ID)
    assert (copy.retry, copy.attempts) == (True, "7")


def test_call_form_has_the_flow() -> None:
    flowing = form(flow_key="vendor:1")
    assert flowing.request(NOW)["flowKey"] == "vendor:1"
    assert "--flow-key vendor:1" in command("http://h:1", TENANT, flowing.request(NOW), flowing)
    assert CallForm.like(record(flow_key="vendor:1"), ID).flow_key == "vendor:1"
    assert "flowKey" not in form().request(NOW)


@each("name", ["it's $HOME", "-x", "--"])
def test_equivalent_command_is_quoted_for_the_shell(name: str) -> None:
    wanted = form(name=name, body='"a\'b"', headers=[("X", "$(reboot)")], tags="a b", when="in", delay="5m")
    words = shlex.split(command("http://h:1", TENANT, wanted.request(NOW), wanted).replace("\\\n", " "))
    assert words[:3] == ["tocsin", "calls", "submit"]
    assert {name, "http://127.0.0.1:9/", "X: $(reboot)", '"a\'b"', "a b", "5m", TENANT, "http://h:1"} <= set(words)
    assert name[0] != "-" or words[-3:] == ["--", name, "http://127.0.0.1:9/"]


# -- filters


def test_link_of_a_list_parses_to_the_same_filters() -> None:
    pairs = [("view", "failed"), ("q", "a&b"), ("tag", "x,y"), ("starred", "yes"), ("submitted", "last-1h"),
             ("rows", "25")]  # fmt: skip
    filters = CallFilters.read(Fields(pairs), UiLimits(), TENANT)
    parsed = Fields(parse_qsl(filters.link().split("?")[1]))
    assert CallFilters.read(parsed, UiLimits(), parsed.get("tenant")) == filters
    wanted = filters.request(NOW)
    assert (wanted.statuses, wanted.tags, wanted.limit) == (("Failed",), ("x", "y", "star"), "25")
    assert wanted.submitted_from == "2030-03-17T16:46:40Z"
    assert wanted.submitted_to is None


def test_search_text_is_an_id_or_a_part_of_a_name() -> None:
    def searched(text: str) -> CallFilters:
        return CallFilters.read(Fields([("q", text)]), UiLimits(), TENANT)

    assert searched(ID.upper()).names_id
    assert not searched("order 17").names_id
    assert searched("order 17").request(NOW).name == "order 17"
    assert searched("").request(NOW).name is None


def test_unknown_values_in_a_url_are_ignored() -> None:
    filters = CallFilters.read(Fields([("view", "x"), ("submitted", "next-1h"), ("rows", "0")]), UiLimits(), TENANT)
    assert (filters.view, filters.range, filters.rows) == ("all", "", UiLimits().list_rows)
    assert not filters.narrowed


# -- one call


def test_call_states_and_versions() -> None:
    assert presentation.state_of(record(), NOW).word == "scheduled"
    assert presentation.state_of(record(), NOW + SECOND).word == "due"
    assert presentation.state_of(record(status="Running"), NOW).word == "running"
    assert presentation.state_of(record(status="Failed"), NOW).tone == "failed"
    versions = {
        presentation.version(each)
        for each in (record(), record(status="Running"), record(status="Running", started_at=1), record(tags=("a",)),
                     record(tags=("a", "b")), record(tags=("ab",)))
    }  # fmt: skip
    assert len(versions) == 6
    retrying = record(status="Retrying", attempts=1, next_attempt_at=NOW + SECOND)
    assert presentation.state_of(retrying, NOW) == State("retrying", "retrying")
    assert presentation.state_of(retrying, NOW + SECOND).word == "due"
    assert presentation.waits(retrying)
    assert not presentation.finished(retrying)
    assert presentation.version(retrying) != presentation.version(record(status="Running", attempts=1))


def test_call_result_shows_any_response() -> None:
    meta = {"status": 200, "headers": {"set-cookie": "s=1"}, "bodySnippet": '{"a":[1]}', "latencyMs": 2.5}
    result = presentation.result_of(record(outcome={"responseMeta": meta}))
    assert result is not None
    assert result.succeeded
    assert result.headers == {"set-cookie": "[redacted]"}
    assert result.readable == '{\n  "a": [\n    1\n  ]\n}'
    cut = presentation.result_of(
        record(outcome={"responseMeta": {**meta, "bodySnippet": '{"a":[1', "truncated": True}})
    )
    assert cut is not None
    assert cut.readable == '{"a":[1'
    bodies = {"\ufffdPNG\r\n\x1a\n": True, "a\x00b": True, "caf\u00e9\r\n\tb \x1b[1m \U0001f514": False, "": False}
    results = [
        presentation.result_of(record(outcome={"responseMeta": {**meta, "bodySnippet": body}})) for body in bodies
    ]
    assert [result.binary for result in results if result] == list(bodies.values())
    failed = presentation.result_of(record(outcome={"errorMeta": {"kind": "TIMEOUT", "message": "no answer"}}))
    assert failed is not None
    assert (failed.status, failed.succeeded, failed.error_kind) == (None, False, "TIMEOUT")
    assert presentation.result_of(record()) is None


def test_timeline_has_past_and_future_entries() -> None:
    ahead = timeline(record(), [], NOW)
    assert [(each.title, each.ahead) for each in ahead] == [("Submitted", False), ("Due", True)]
    ended = timeline(record(status="Failed", finished_at=NOW + 9, outcome={"errorMeta": {"kind": "X"}}), [], NOW)
    assert (ended[-1].title, ended[-1].note) == ("Failed", "X")
    due = record(status="Running", flow_key="vendor")
    assert [timeline(due, [], NOW, waits)[-1].title for waits in (None, WaitsFor.FLOW)] == [
        "Waiting for a free slot",
        "Waiting for its flow",
    ]
    named = record(status="Running", request_spec=RequestSpec("GET", "https://pay.example/", credential="pay"))
    last = timeline(named, [], NOW, WaitsFor.CREDENTIAL, "it has no token yet")[-1]
    assert (last.title, last.note) == ("Waiting for its credential", "pay: it has no token yet")


def test_a_form_with_a_credential_is_the_request_and_the_command() -> None:
    filled = form(credential="pay")
    assert filled.request(NOW)["requestSpec"]["credential"] == "pay"
    assert "--credential pay" in command("http://127.0.0.1:9000", TENANT, filled.request(NOW), filled)
    spec = RequestSpec("GET", "https://pay.example/", credential="pay")
    assert CallForm.like(record(request_spec=spec), ID).credential == "pay"


# -- traces


def entry(identifier: str, cause: str | None = None, kind: str = "message", at: int = NOW, **detail: Any) -> TraceEntry:
    return TraceEntry(at, kind, identifier.upper(), identifier, cause, detail)


def test_trace_is_indented_by_causation() -> None:
    lines = trace_lines(
        [
            entry("row", kind="service_calls", dueAt="2030-03-17T17:46:41Z", number=1),
            entry("a", "command"),
            entry("b", "a", at=NOW + 1_500),
            entry("c", "b"),
            entry("d", "a"),
        ]
    )
    assert [line.depth for line in lines] == [0, 0, 1, 2, 1]
    assert [line.cause for line in lines] == ["", "a command or a due time", "A", "B", "A"]
    assert lines[0].detail == (("dueAt", "+1000 ms"),)
    assert lines[2].after_us == 1_500


def test_circular_or_deep_traces_are_cut() -> None:
    assert [line.depth for line in trace_lines([entry("a", "b"), entry("b", "a")])]
    assert [line.depth for line in trace_lines([entry("a", "a")])] == [0]
    deep = trace_lines([entry(str(number), str(number - 1)) for number in range(2_000)])
    assert deep[-1].depth == DEPTH_MAX
    assert trace_lines([]) == []


# -- statistics and principals


def test_statistics_count_calls_and_changes_per_tenant() -> None:
    statistics = Statistics(StatisticsLimits(), NOW, dict)
    calls = CallStatistics(statistics, tenants_max=2)
    calls(CommandHandled("SubmitServiceCall", "accepted", "a", ID, "c"))
    calls(CommandHandled("SubmitServiceCall", "repeated", "a", ID, "c"))
    calls(CommandHandled("TagServiceCall", "accepted", "b", ID, "c"))
    calls(ServiceCallChanged("Running", "a", ID, "c", 2_000))
    calls(ServiceCallChanged("Succeeded", "a", ID, "c"))
    for status in ("Retrying", "Failed"):
        calls(ExecutionFinished("HTTP_STATUS", "a", ID, "c", ID, "http://x:80", 10, 503))
        calls(ServiceCallChanged(status, "a", ID, "c"))
    counts = statistics.present.calls
    assert (counts.submitted, counts.succeeded, counts.failed) == (1, 1, 1)
    half = counts.lag.percentile_ms(0.5)
    assert half is not None
    assert 1.9 <= half <= 3
    failing = statistics.present.calls_failing[failing_place("", "http://x:80")]
    assert (failing.failures, failing.exhausted, failing.last_error) == (2, 1, "HTTP_503")
    assert (calls.change_counter("A").created, calls.change_counter("a").changed) == (1, 4)
    assert (calls.change_counter("b").created, calls.change_counter("b").changed) == (0, 1)
    calls(CommandHandled("TagServiceCall", "accepted", "c", ID, "c"))
    assert (calls.change_counter("a").changed, calls.change_counter("b").changed) == (4, 0)


def test_permissions_on_calls_by_tenant() -> None:
    def principal(**limits: Any) -> Principal:
        return Principal(ApiKey("k", "h", Role.READ, **limits), "")

    assert Principal(None, "").may_call("write", TENANT)
    assert principal().may_call_somewhere("read")
    assert not principal().may_call_somewhere("write")
    limited = principal(tenants=(TENANT.upper(),))
    assert limited.may_call("read", TENANT)
    assert not limited.may_call("read", ID)
    assert limited.is_limited
    assert not limited.may_somewhere("read")
    assert not principal(namespaces=("n",)).may_call_somewhere("read")
