"""Service calls as pages show them: forms, filters, traces, statistics."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from tocsin.agent.api.ports import CallRecord, TraceEntry
from tocsin.agent.events import CommandHandled, ExecutionFinished, ServiceCallChanged
from tocsin.agent.messages import RequestSpec
from tocsin.callbacks import plain
from tocsin.model.access import ApiKey, Role
from tocsin.model.errors import InvalidInput
from tocsin.model.retry import RetryPolicy
from tocsin.ui.calls import show
from tocsin.ui.calls.detail import time_line
from tocsin.ui.calls.filters import CallFilters
from tocsin.ui.calls.forms import METHODS, CallForm, command
from tocsin.ui.calls.statistics import CallStatistics
from tocsin.ui.calls.trace import DEPTH_MAX, trace_lines
from tocsin.ui.limits import UiLimits
from tocsin.ui.sessions import Visitor
from tocsin.ui.show import State
from tocsin.ui.statistics import Statistics
from tocsin.ui.visit import Fields

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


def test_the_form_offers_every_method_that_a_call_can_have() -> None:
    assert set(METHODS) == set(plain.METHODS)


def test_a_form_says_what_a_client_would_send() -> None:
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


def test_all_bad_fields_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        form(body="{", when="in", delay="soon", headers=[("A", "b"), ("A", "c")]).request(NOW)
    assert {error.path for error in refused.value.errors} == {"requestSpec.body", "requestSpec.headers", "delay"}


def test_a_copy_has_no_secrets_and_asks_for_them() -> None:
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


def test_retries_are_off_until_they_are_chosen() -> None:
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


@pytest.mark.parametrize("name", ["it's $HOME", "-x", "--"])
def test_the_equal_command_is_one_line_for_a_shell(name: str) -> None:
    asked = form(name=name, body='"a\'b"', headers=[("X", "$(reboot)")], tags="a b", when="in", delay="5m")
    words = shlex.split(command("http://h:1", TENANT, asked.request(NOW), asked).replace("\\\n", " "))
    assert words[:3] == ["tocsin", "calls", "submit"]
    assert {name, "http://127.0.0.1:9/", "X: $(reboot)", '"a\'b"', "a b", "5m", TENANT, "http://h:1"} <= set(words)
    assert name[0] != "-" or words[-3:] == ["--", name, "http://127.0.0.1:9/"]


# -- filters


def test_a_link_reads_back_as_the_same_list() -> None:
    pairs = [("view", "failed"), ("q", "a&b"), ("tag", "x,y"), ("starred", "yes"), ("submitted", "last-1h"),
             ("rows", "25")]  # fmt: skip
    filters = CallFilters.read(Fields(pairs), UiLimits(), TENANT)
    again = Fields(parse_qsl(filters.link().split("?")[1]))
    assert CallFilters.read(again, UiLimits(), again.get("tenant")) == filters
    asked = filters.request(NOW)
    assert (asked.statuses, asked.tags, asked.limit) == (("Failed",), ("x", "y", "star"), "25")
    assert asked.submitted_from == "2030-03-17T16:46:40Z"
    assert asked.submitted_to is None


def test_a_search_is_for_an_id_or_for_a_part_of_a_name() -> None:
    def searched(text: str) -> CallFilters:
        return CallFilters.read(Fields([("q", text)]), UiLimits(), TENANT)

    assert searched(ID.upper()).names_id
    assert not searched("order 17").names_id
    assert searched("order 17").request(NOW).name == "order 17"
    assert searched("").request(NOW).name is None


def test_what_isn_t_known_in_a_url_is_left_out() -> None:
    filters = CallFilters.read(Fields([("view", "x"), ("submitted", "next-1h"), ("rows", "0")]), UiLimits(), TENANT)
    assert (filters.view, filters.range, filters.rows) == ("all", "", UiLimits().list_rows)
    assert not filters.narrowed


# -- one call


def test_states_and_versions() -> None:
    assert show.state_of(record(), NOW).word == "scheduled"
    assert show.state_of(record(), NOW + SECOND).word == "due"
    assert show.state_of(record(status="Running"), NOW).word == "running"
    assert show.state_of(record(status="Failed"), NOW).tone == "failed"
    versions = {
        show.version(each)
        for each in (record(), record(status="Running"), record(status="Running", started_at=1), record(tags=("a",)),
                     record(tags=("a", "b")), record(tags=("ab",)))
    }  # fmt: skip
    assert len(versions) == 6
    retrying = record(status="Retrying", attempts=1, next_attempt_at=NOW + SECOND)
    assert show.state_of(retrying, NOW) == State("retrying", "retrying")
    assert show.state_of(retrying, NOW + SECOND).word == "due"
    assert show.waits(retrying)
    assert not show.finished(retrying)
    assert show.version(retrying) != show.version(record(status="Running", attempts=1))


def test_an_answer_is_readable_whatever_it_is() -> None:
    meta = {"status": 200, "headers": {"set-cookie": "s=1"}, "bodySnippet": '{"a":[1]}', "latencyMs": 2.5}
    answer = show.answer_of(record(outcome={"responseMeta": meta}))
    assert answer is not None
    assert answer.good
    assert answer.headers == {"set-cookie": "[redacted]"}
    assert answer.readable == '{\n  "a": [\n    1\n  ]\n}'
    cut = show.answer_of(record(outcome={"responseMeta": {**meta, "bodySnippet": '{"a":[1', "truncated": True}}))
    assert cut is not None
    assert cut.readable == '{"a":[1'
    bodies = {"\ufffdPNG\r\n\x1a\n": True, "a\x00b": True, "caf\u00e9\r\n\tb \x1b[1m \U0001f514": False, "": False}
    answers = [show.answer_of(record(outcome={"responseMeta": {**meta, "bodySnippet": body}})) for body in bodies]
    assert [answer.binary for answer in answers if answer] == list(bodies.values())
    failed = show.answer_of(record(outcome={"errorMeta": {"kind": "TIMEOUT", "message": "no answer"}}))
    assert failed is not None
    assert (failed.status, failed.good, failed.error_kind) == (None, False, "TIMEOUT")
    assert show.answer_of(record()) is None


def test_a_time_line_says_what_was_and_what_will_be() -> None:
    ahead = time_line(record(), [], NOW)
    assert [(each.title, each.ahead) for each in ahead] == [("Submitted", False), ("Due", True)]
    ended = time_line(record(status="Failed", finished_at=NOW + 9, outcome={"errorMeta": {"kind": "X"}}), [], NOW)
    assert (ended[-1].title, ended[-1].note) == ("Failed", "X")


# -- traces


def entry(identifier: str, cause: str | None = None, kind: str = "message", at: int = NOW, **detail: Any) -> TraceEntry:
    return TraceEntry(at, kind, identifier.upper(), identifier, cause, detail)


def test_a_trace_is_indented_by_causation() -> None:
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


def test_a_trace_that_goes_round_or_deep_ends() -> None:
    assert [line.depth for line in trace_lines([entry("a", "b"), entry("b", "a")])]
    assert [line.depth for line in trace_lines([entry("a", "a")])] == [0]
    deep = trace_lines([entry(str(number), str(number - 1)) for number in range(2_000)])
    assert deep[-1].depth == DEPTH_MAX
    assert trace_lines([]) == []


# -- statistics and visitors


def test_figures_count_calls_and_tell_tenants_apart() -> None:
    statistics = Statistics(UiLimits(), NOW, dict)
    calls = CallStatistics(statistics, UiLimits(tenant_change_counters_max=2))
    calls(CommandHandled("SubmitServiceCall", "accepted", "a", ID, "c"))
    calls(CommandHandled("SubmitServiceCall", "repeated", "a", ID, "c"))
    calls(CommandHandled("TagServiceCall", "accepted", "b", ID, "c"))
    calls(ServiceCallChanged("Running", "a", ID, "c", 2_000))
    calls(ServiceCallChanged("Succeeded", "a", ID, "c"))
    for status in ("Retrying", "Failed"):
        calls(ExecutionFinished("TIMEOUT", "a", ID, "c", ID, "http://x:80", 10))
        calls(ServiceCallChanged(status, "a", ID, "c"))
    bucket = statistics.present.calls
    assert (bucket.submitted, bucket.succeeded, bucket.failed) == (1, 1, 1)
    half = bucket.lag_ms(0.5)
    assert half is not None
    assert 1.9 <= half <= 3
    failing = bucket.destinations["http://x:80"]
    assert (failing.failures, failing.gave_up, failing.last_error) == (2, 1, "TIMEOUT")
    assert (calls.pulse("A").created, calls.pulse("a").changed) == (1, 4)
    assert (calls.pulse("b").created, calls.pulse("b").changed) == (0, 1)
    calls(CommandHandled("TagServiceCall", "accepted", "c", ID, "c"))
    assert (calls.pulse("a").changed, calls.pulse("b").changed) == (4, 0)


def test_who_may_see_whose_calls() -> None:
    def visitor(**limits: Any) -> Visitor:
        return Visitor(ApiKey("k", "h", Role.READ, **limits), "")

    assert Visitor(None, "").may_call("write", TENANT)
    assert visitor().may_call_somewhere("read")
    assert not visitor().may_call_somewhere("write")
    limited = visitor(tenants=(TENANT.upper(),))
    assert limited.may_call("read", TENANT)
    assert not limited.may_call("read", ID)
    assert limited.names_tenants
    assert not limited.may_somewhere("read")
    assert not visitor(namespaces=("n",)).may_call_somewhere("read")
