"""The port of the API module, on every database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.agent_database import (
    NOW,
    OTHER_TENANT,
    TENANT,
    call,
    change,
    end,
    entry,
    envelope,
    insert,
    load,
    new_id,
    running,
    start,
)
from tocsin.service_calls.messages import CallKey, CallStatus, ResponseMeta
from tocsin.service_calls.ports import (
    CallFilter,
    CallOutcome,
    CallRecord,
    Change,
    PagePosition,
    ServiceCall,
    Transaction,
)
from tocsin.stores.service_calls import queries
from tocsin.stores.service_calls.database import AgentDatabase

STATUSES = [status.value for status in CallStatus]
TAGS = ("a", "b", "c")


def record(of: ServiceCall) -> CallRecord:
    outcome = None if of.outcome is None else msgspec.json.decode(msgspec.json.encode(of.outcome))
    return CallRecord(
        of.tenant_id,
        of.service_call_id,
        of.name,
        of.status.value,
        of.submitted_at,
        of.due_at,
        of.started_at,
        of.finished_at,
        of.request_spec,
        outcome,
        of.correlation_id,
        tuple(sorted(of.tags)),
    )


async def test_a_call_is_found_with_its_tags_and_outcome(database: AgentDatabase) -> None:
    one = call(tags=("b", "a"))
    await insert(database, one, call(OTHER_TENANT))
    assert await database.queries.find(one.key) == record(one)
    outcome = CallOutcome(ResponseMeta(200, {}, "fine", 2.5))
    done = msgspec.structs.replace(
        one, status=CallStatus.SUCCEEDED, started_at=NOW, finished_at=NOW + 1, outcome=outcome, watch_at=None
    )
    await change(database, Change(one, done))
    assert await database.queries.find(one.key) == record(done)
    assert await database.queries.find(CallKey(OTHER_TENANT, one.service_call_id)) is None
    assert await database.queries.executions(CallKey(OTHER_TENANT, one.service_call_id)) == []


async def test_many_calls_are_found_in_one_query(database: AgentDatabase) -> None:
    one, two, foreign = call(tags=("a",)), call(), call(OTHER_TENANT)
    await insert(database, one, two, foreign)
    found = await database.queries.find_many(
        [one.key, CallKey(TENANT, new_id()), two.key, CallKey(TENANT, foreign.key[1])]
    )
    assert {each.service_call_id: each for each in found} == {each.key[1]: record(each) for each in (one, two)}
    assert await database.queries.find_many([]) == []


def _calls() -> list[ServiceCall]:
    """Calls of two tenants, several at each instant, in all statuses, with all sets of tags."""
    return [
        call(
            (TENANT, TENANT, OTHER_TENANT)[n % 3],
            submitted_at=NOW + n // 7,
            status=list(CallStatus)[n % 4],
            tags=tuple(tag for place, tag in enumerate(TAGS) if n >> place & 1),
        )
        for n in range(70)
    ]


filters = st.builds(
    CallFilter,
    tenants=st.sampled_from([TENANT, OTHER_TENANT]),
    statuses=st.frozensets(st.sampled_from(STATUSES)),
    tags=st.lists(st.sampled_from(TAGS), unique=True, max_size=3).map(tuple),
    submitted_from=st.none() | st.integers(NOW - 1, NOW + 11),
    submitted_to=st.none() | st.integers(NOW - 1, NOW + 11),
    limit=st.integers(1, 12),
)


def matches(of: ServiceCall, wanted: CallFilter) -> bool:
    return (
        (wanted.tenants is None or of.tenant_id in wanted.tenants)
        and (not wanted.statuses or of.status.value in wanted.statuses)
        and set(wanted.tags) <= set(of.tags)
        and (wanted.submitted_from is None or of.submitted_at >= wanted.submitted_from)
        and (wanted.submitted_to is None or of.submitted_at < wanted.submitted_to)
    )


async def test_pages_are_complete_and_stable_under_filters(database: AgentDatabase) -> None:
    calls = _calls()
    await insert(database, *calls)

    async def check(wanted: CallFilter) -> None:
        expected = sorted(
            (record(c) for c in calls if matches(c, wanted)),
            key=lambda r: (r.submitted_at, r.service_call_id),
            reverse=True,
        )
        found: list[CallRecord] = []
        while page := await database.queries.page(wanted):
            assert len(page) <= wanted.limit
            found += page
            wanted = _after(wanted, page[-1])
        assert found == expected

    await _for_all(filters, check)


async def test_pages_of_several_tenants_are_complete_however_few_calls_a_search_reads(
    database: AgentDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SEARCHED_MAX", 9)
    calls = _calls()
    await insert(database, *calls)

    async def check(wanted: CallFilter) -> None:
        expected = sorted(
            (record(c) for c in calls if matches(c, wanted)),
            key=lambda r: (r.submitted_at, r.service_call_id),
            reverse=True,
        )
        assert await all_found(wanted) == expected

    async def all_found(wanted: CallFilter) -> list[CallRecord]:
        found: list[CallRecord] = []
        while True:
            page, reached = await database.queries.search(wanted)
            assert len(page) <= wanted.limit
            found += page
            if len(page) == wanted.limit:
                reached = PagePosition(page[-1].submitted_at, page[-1].service_call_id)
            if reached is None:
                return found
            wanted = replace(wanted, before=reached)

    tenants = st.sampled_from([None, (TENANT,), (OTHER_TENANT, TENANT), (new_id(),), ()])
    await _for_all(st.builds(replace, filters, tenants=tenants), check)
    of_request = CallFilter(None, correlation_id=calls[5].correlation_id, limit=100)
    assert await all_found(of_request) == [record(calls[5])]


async def test_calls_are_found_over_tenants_by_their_request_and_by_id(database: AgentDatabase) -> None:
    one, two, other = call(correlation_id="c"), call(OTHER_TENANT, correlation_id="c"), call(correlation_id="d")
    await insert(database, one, two, other)

    async def of_request(tenants: tuple[str, ...] | None, limit: int = 9) -> set[str]:
        return {found.service_call_id for found in await database.queries.of_request("c", tenants, limit)}

    both = {one.service_call_id, two.service_call_id}
    assert await of_request(None) == await of_request((OTHER_TENANT, TENANT)) == both
    assert await of_request((OTHER_TENANT,)) == {two.service_call_id}
    assert await of_request(()) == set()
    assert len(await of_request(None, 1)) == 1
    found, _ = await database.queries.search(CallFilter(None, service_call_id=two.service_call_id))
    assert found == [record(two)]


async def test_calls_are_counted_by_status(database: AgentDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _calls()
    await insert(database, *calls)

    def expected(*tenants: str) -> dict[str, tuple[int, bool]]:
        numbers = Counter(each.status for each in calls if each.tenant_id in tenants)
        return {status: (numbers[status], False) for status in CallStatus}

    assert await database.queries.counts(TENANT, 50) == expected(TENANT)
    assert await database.queries.counts(TENANT, 3) == {
        status: (min(number, 3), number > 3) for status, (number, _) in expected(TENANT).items()
    }
    assert await database.queries.counts(None, 50) == expected(TENANT, OTHER_TENANT)
    assert await database.queries.counts((OTHER_TENANT,), 50) == expected(OTHER_TENANT)
    assert await database.queries.counts((), 50) == expected()
    monkeypatch.setattr(queries, "SEARCHED_MAX", 9)
    among = await database.queries.counts(None, 50)
    assert (sum(number for number, _ in among.values()), {more for _, more in among.values()}) == (9, {True})


def _after(wanted: CallFilter, last: CallRecord) -> CallFilter:
    place = PagePosition(last.submitted_at, last.service_call_id)
    return CallFilter(
        wanted.tenants,
        wanted.statuses,
        wanted.tags,
        wanted.submitted_from,
        wanted.submitted_to,
        place,
        wanted.limit,
    )


async def _for_all(strategy: st.SearchStrategy[CallFilter], check: object) -> None:
    """Hypothesis calls synchronous functions; the examples are collected and checked on this loop."""
    examples: list[CallFilter] = []

    @settings(max_examples=60, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(strategy)
    def collect(example: CallFilter) -> None:
        examples.append(example)

    collect()
    for example in examples:
        await check(example)  # type: ignore[operator]


async def test_pages_continue_correctly_despite_concurrent_changes(database: AgentDatabase) -> None:
    calls = [call(submitted_at=NOW + n) for n in range(6)]
    await insert(database, *calls)
    first = await database.queries.page(CallFilter(TENANT, limit=3))
    await insert(database, call(submitted_at=NOW + 100))
    await change(database, running(calls[4]))
    second = await database.queries.page(_after(CallFilter(TENANT, limit=3), first[-1]))
    assert [r.submitted_at - NOW for r in (*first, *second)] == [5, 4, 3, 2, 1, 0]


async def test_a_trace_has_every_entry_of_the_request_and_no_payload(database: AgentDatabase) -> None:
    one = call(tags=("t",))
    other_tenants = call(OTHER_TENANT, correlation_id=one.correlation_id)
    await insert(database, one, other_tenants)
    submitted = envelope(one, "ServiceCallSubmitted")
    ordered = envelope(one, "StartExecution", causation_id=submitted.id, timestamp_ms=NOW // 1_000 + 1)

    async def work(t: Transaction) -> None:
        await t.append([submitted, envelope(other_tenants), ordered])

    await database.calls.transact(work)
    await database.timers.schedule_timers([entry(one)])
    begun = start(one, started_at=NOW + 2_000)
    await database.executions.begin([(begun, envelope(one, "ExecutionStarted", timestamp_ms=NOW // 1_000 + 2))])
    ended = end(begun, finished_at=NOW + 2_400)
    await database.executions.finish([(ended, envelope(one, "ExecutionSucceeded", timestamp_ms=NOW // 1_000 + 3))])
    trace = await database.queries.trace(one.key)
    assert [(t.kind, t.name) for t in trace] == [
        ("message", "ServiceCallSubmitted"),
        ("service_calls", "Scheduled"),
        ("timer_schedules", "Scheduled"),
        ("message", "StartExecution"),
        ("message", "ExecutionStarted"),
        ("http_execution_log", "Finished"),
        ("message", "ExecutionSucceeded"),
    ]
    assert [t.causation_id for t in trace if t.name == "StartExecution"] == [submitted.id]
    assert all("payload" not in t.detail for t in trace)
    assert await database.queries.trace(CallKey(TENANT, new_id())) == []
    assert await database.queries.trace(CallKey(OTHER_TENANT, one.service_call_id)) == []


async def test_trace_entries_follow_their_cause(database: AgentDatabase) -> None:
    """Messages have milliseconds and rows microseconds, a clock may be set back, and a row shows only its latest state."""
    one = call(
        submitted_at=NOW + 999, due_at=NOW + 999, status=CallStatus.FAILED, started_at=NOW + 2_000, finished_at=NOW + 3_000,
        outcome=CallOutcome(ResponseMeta(500, {}, "", 1.0)), watch_at=None,
    )  # fmt: skip
    await insert(database, one)
    ms = NOW // 1_000
    submitted = envelope(one, "ServiceCallSubmitted", timestamp_ms=ms)
    ordered = envelope(one, "StartExecution", causation_id=submitted.id, timestamp_ms=ms - 5)
    failed = envelope(one, "ExecutionFailed", causation_id=ordered.id, timestamp_ms=ms + 3)
    over = envelope(one, "ServiceCallFailed", causation_id=failed.id, timestamp_ms=ms - 5)
    await database.calls.transact(lambda t: t.append([submitted, ordered, failed, over]))
    begun = start(one, started_at=NOW + 2_000)
    await database.executions.begin([(begun, envelope(one, "ExecutionStarted", timestamp_ms=ms + 2))])
    await database.executions.finish([(end(begun, finished_at=NOW + 3_000), envelope(one, "X", timestamp_ms=ms + 9))])
    trace = await database.queries.trace(one.key)
    assert [(t.kind, t.name) for t in trace] == [
        ("message", "ServiceCallSubmitted"),
        ("message", "StartExecution"),
        ("message", "ExecutionStarted"),
        ("message", "ExecutionFailed"),
        ("message", "ServiceCallFailed"),
        ("service_calls", "Failed"),
        ("http_execution_log", "Finished"),
        ("message", "X"),
    ]
    assert [t.at for t in trace] == sorted(t.at for t in trace)
    places = {t.id: place for place, t in enumerate(trace)}
    assert all(places[t.causation_id] < places[t.id] for t in trace if t.causation_id in places)


async def test_calls_are_found_by_part_of_their_name(database: AgentDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["Charge order 17", "charge order 18", "Mail 100%", "Mail order_17", "Other"]
    calls = [call(name=name, submitted_at=NOW + place, tags=("t",)) for place, name in enumerate(names)]
    await insert(database, *calls, call(OTHER_TENANT, name="Charge"))
    await change(database, running(calls[1]))

    async def found(name: str, **fields: object) -> list[str]:
        calls, reached = await database.queries.search(CallFilter(TENANT, name=name, **fields))  # type: ignore[arg-type]
        assert reached is None
        return [found.name for found in calls]

    assert await found("CHARGE") == [names[1], names[0]]
    assert await found("order 17") == [names[0]]
    assert await found("%") == [names[2]]
    assert await found("r_1") == [names[3]]
    assert await found("nothing") == []
    assert await found("charge", tags=("t",), limit=1) == [names[1]]
    for statuses in ({"Running"}, {"Running", "Failed"}):
        assert await found("order", statuses=frozenset(statuses)) == [names[1]]
    # It reads three at a time, the newest first.
    monkeypatch.setattr(queries, "SEARCHED_MAX", 3)
    first = await database.queries.search(CallFilter(TENANT, name="17"))
    assert ([r.name for r in first.calls], first.reached) == (
        [names[3]],
        PagePosition(NOW + 2, calls[2].service_call_id),
    )
    rest = await database.queries.search(CallFilter(TENANT, name="17", before=first.reached))
    assert ([r.name for r in rest.calls], rest.reached) == ([names[0]], None)
    monkeypatch.setattr(queries, "SEARCHED_MAX", 2)
    mixed = await database.queries.search(CallFilter(TENANT, frozenset({"Scheduled", "Running"}), name="nothing"))
    assert mixed == ([], PagePosition(NOW + 3, calls[3].service_call_id))


async def test_calls_are_found_by_their_correlation_id(database: AgentDatabase) -> None:
    request = new_id()
    mine = [call(correlation_id=request, submitted_at=NOW + place, tags=("a", "b")) for place in range(3)]
    await insert(database, *mine, call(tags=("a",)), call(OTHER_TENANT, correlation_id=request))
    await change(database, running(mine[1]))
    wanted = CallFilter(TENANT, correlation_id=request)
    assert [r.service_call_id for r in await database.queries.page(wanted)] == [c.service_call_id for c in mine[::-1]]
    narrowed = replace(wanted, statuses=frozenset({"Running", "Failed"}), tags=("a", "b"))
    assert [r.service_call_id for r in await database.queries.page(narrowed)] == [mine[1].service_call_id]


@pytest.mark.parametrize("body", ["plain", "nul \0 inside"])
async def test_arbitrary_text_is_stored_unchanged(database: AgentDatabase, body: str) -> None:
    one = call(name=body)
    await insert(database, one)
    loaded = await load(database, one.key)
    assert loaded is not None
    assert loaded.name == body.replace("\0", "\ufffd")


async def test_urls_of_unfinished_calls_with_failed_attempts(
    database: AgentDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    retrying = call(status=CallStatus.RETRYING, attempts=2)
    again = call(OTHER_TENANT, status=CallStatus.RUNNING, attempts=1)
    first = call(status=CallStatus.RUNNING)
    unlogged = call(status=CallStatus.RETRYING, attempts=1)
    failed = call(status=CallStatus.FAILED, attempts=3, watch_at=None, finished_at=NOW)
    await insert(database, retrying, again, first, unlogged, failed, call())
    logged = [(of, f"http://{place}.test/") for place, of in enumerate((retrying, retrying, again, first, failed))]
    await database.executions.begin([(start(of, request_url=url), envelope(of)) for of, url in logged])
    found = await database.queries.attempted_urls(3)
    assert found is not None
    assert sorted(found) in (["http://0.test/", "http://2.test/"], ["http://1.test/", "http://2.test/"])
    # More than are wanted, or too many to look for them.
    assert await database.queries.attempted_urls(2) is None
    monkeypatch.setattr(queries, "SEARCHED_MAX", 4)
    assert await database.queries.attempted_urls(3) is None
    monkeypatch.setattr(queries, "SEARCHED_MAX", 5)
    assert await database.queries.attempted_urls(3) is not None
