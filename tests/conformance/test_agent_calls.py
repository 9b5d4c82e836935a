"""The port of orchestration, on every database."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.support.agent_database import (
    EVER,
    NOW,
    OTHER_TENANT,
    TENANT,
    append,
    call,
    change,
    end,
    entry,
    envelope,
    insert,
    load,
    new_id,
    rows,
    running,
    start,
    write,
)
from tocsin.model.hooks import Hook, Hooks
from tocsin.service_calls.messages import CallKey, CallStatus, ErrorMeta, ResponseMeta
from tocsin.service_calls.ports import CallOutcome, Change, OutboxRow, ServiceCall, Transaction
from tocsin.stores.service_calls.database import AgentDatabase

TABLES = ("service_calls", "service_call_tags", "timer_schedules", "http_execution_log")


def finished(before: ServiceCall, at_us: int = NOW + 5) -> Change:
    outcome = CallOutcome(ResponseMeta(200, {"a": "b"}, "fine", 1.5), ErrorMeta("TIMEOUT", "late"))
    changed = msgspec.structs.replace(
        before, status=CallStatus.FAILED, started_at=NOW, finished_at=at_us, outcome=outcome, watch_at=None
    )
    return Change(before, changed)


def in_other_tenant(of: ServiceCall) -> ServiceCall:
    """The same id in another tenant."""
    return msgspec.structs.replace(of, tenant_id=OTHER_TENANT)


async def test_a_call_loads_as_inserted_and_changed(database: AgentDatabase) -> None:
    plain = call(
        name="a\u00e4\U0001f600",
        idempotency_key="k",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        hooks=Hooks(failure=Hook("https://alerts.example/", {"a": "b"})),
    )
    await insert(database, plain)
    assert await load(database, plain.key) == plain
    to_running = running(plain, due_at=NOW + 9)
    to_failed = finished(to_running.after)
    assert await change(database, to_running, to_failed) == {plain.key}
    assert await load(database, plain.key) == to_failed.after


async def test_only_existing_calls_are_loaded(database: AgentDatabase) -> None:
    calls = [call() for _ in range(150)]
    await insert(database, *calls)
    keys = [c.key for c in calls] + [CallKey(TENANT, new_id())]
    assert await database.calls.transact(lambda t: t.load(keys)) == {c.key: c for c in calls}
    assert await database.calls.transact(lambda t: t.load([])) == {}


async def test_insert_returns_which_calls_are_new(database: AgentDatabase) -> None:
    first, second = call(idempotency_key="k"), call()
    await insert(database, first, second)
    again = msgspec.structs.replace(first, name="other", tags=("x",))
    same_key, new = call(idempotency_key="k", tags=("y",)), call()
    added = await database.calls.transact(lambda t: t.insert([again, same_key, new, new]))
    assert added == {new.key}
    assert await load(database, first.key) == first
    assert await load(database, same_key.key) is None
    assert await rows(database, "SELECT tag FROM service_call_tags") == []


async def test_idempotency_keys_belong_to_one_tenant(database: AgentDatabase) -> None:
    mine, theirs = call(idempotency_key="k"), call(OTHER_TENANT, idempotency_key="k")
    await insert(database, mine, theirs)
    found = await database.calls.transact(lambda t: t.find_by_idempotency_key([(TENANT, "k"), (TENANT, "none")]))
    assert found == {(TENANT, "k"): mine}


async def test_a_change_is_written_only_over_its_before_state(database: AgentDatabase) -> None:
    one, two = call(), call()
    await insert(database, one, two)
    first, rival = running(one), running(one)
    assert await change(database, first) == {one.key}
    assert await change(database, rival, running(two)) == {two.key}
    assert await load(database, one.key) == first.after
    # The same status with another execution is a different state.
    other = Change(msgspec.structs.replace(first.after, execution_id=new_id()), rival.after)
    assert await change(database, other) == set()
    assert await change(database, running(call())) == set()


async def test_only_scheduled_calls_are_deleted_with_their_references(database: AgentDatabase) -> None:
    waiting, busy = call(tags=("t",)), call(tags=("t",))
    await insert(database, waiting, busy)
    for c in (waiting, busy):
        await database.timers.schedule_timers([entry(c)])
        await database.executions.begin([(start(c), envelope(c))])
    await change(database, running(busy))
    gone = await database.calls.transact(lambda t: t.delete_waiting([waiting.key, busy.key, CallKey(TENANT, new_id())]))
    assert gone == {waiting.key}
    for table in TABLES:
        assert await rows(database, f"SELECT service_call_id FROM {table}") == [(busy.service_call_id,)], table


async def test_finished_calls_are_purged_with_their_references(database: AgentDatabase) -> None:
    early, late, busy = (call(tags=("t",)) for _ in range(3))
    await insert(database, early, late, busy)
    for c in (early, late, busy):
        await database.timers.schedule_timers([entry(c)])
        await database.executions.begin([(start(c), envelope(c))])
    await change(database, running(busy), finished(early, NOW + 5), finished(late, NOW + 6))
    assert await database.calls.transact(lambda t: t.purge(NOW + 5 - EVER, -EVER, 10)) == 0
    assert await database.calls.transact(lambda t: t.purge(NOW + 7 - EVER, -EVER, 1)) == 1
    for table in TABLES:
        left = await rows(database, f"SELECT service_call_id FROM {table} ORDER BY service_call_id")
        assert left == [(late.service_call_id,), (busy.service_call_id,)], table
    assert await database.calls.transact(lambda t: t.purge(NOW + 7 - EVER, -EVER, 10)) == 1


async def test_a_clock_that_is_ahead_purges_no_calls(database: AgentDatabase, database_url: str) -> None:
    """SQLite has no clock but the node's."""
    now_us, hour_us = time.time_ns() // 1_000, 3_600_000_000
    one = call()
    await insert(database, one)
    await change(database, finished(one, now_us - 2 * hour_us))
    gone = 1 if database_url.startswith("sqlite") else 0
    assert await database.calls.transact(lambda t: t.purge(now_us + 9_000 * hour_us, 4 * hour_us, 10)) == gone
    assert await database.calls.transact(lambda t: t.purge(now_us, hour_us, 10)) == 1 - gone


async def test_tags_are_added_and_removed_once(database: AgentDatabase) -> None:
    one, two = call(tags=("b", "a")), call()
    await insert(database, one, two)
    gone = CallKey(TENANT, new_id())

    async def work(t: Transaction) -> dict[CallKey, tuple[str, ...]]:
        await t.add_tags([(one.key, "a"), (one.key, "c"), (two.key, "x"), (two.key, "x"), (gone, "y")])
        await t.remove_tags([(one.key, "b"), (one.key, "never"), (gone, "y")])
        return await t.tags([one.key, two.key, gone])

    assert await database.calls.transact(work) == {one.key: ("a", "c"), two.key: ("x",), gone: ()}


async def test_overdue_calls_are_found_the_earliest_first(database: AgentDatabase) -> None:
    calls = [call(watch_at=NOW + at) for at in (3, 1, 2, 9)]
    await insert(database, *calls)
    await change(database, finished(calls[2]))

    async def watched(limit: int) -> list[ServiceCall]:
        return (await database.calls.transact(lambda t: t.to_watch(NOW + 3, limit))).rows

    assert await watched(10) == [calls[1], calls[0]]
    assert await watched(1) == [calls[1]]


async def test_a_failed_transaction_is_rolled_back(database: AgentDatabase) -> None:
    reported: list[OutboxRow] = []
    database.outbox.on_appended(reported.extend)
    old, new = call(), call(tags=("t",))
    await insert(database, old)

    async def work(t: Transaction) -> None:
        await t.insert([new])
        await t.change([running(old)])
        await t.append([envelope(new)])
        raise LookupError("decided otherwise")

    with pytest.raises(LookupError):
        await database.calls.transact(work)
    assert await load(database, old.key) == old
    assert await load(database, new.key) is None
    assert await database.outbox.unpublished(0, 10) == []
    assert reported == []


async def test_tenants_are_isolated(database: AgentDatabase) -> None:
    mine = call(tags=("t",), idempotency_key="k")
    theirs = in_other_tenant(mine)
    await insert(database, mine, theirs)
    execution = start(mine)
    other_execution = execution._replace(tenant_id=OTHER_TENANT)

    async def of_calls(t: Transaction) -> None:
        assert await t.load([mine.key]) == {mine.key: msgspec.structs.replace(mine, tags=())}
        assert set(await t.find_by_idempotency_key([(TENANT, "k")])) == {(TENANT, "k")}
        assert await t.tags([mine.key]) == {mine.key: ("t",)}
        await t.add_tags([(mine.key, "more")])
        await t.remove_tags([(mine.key, "t")])
        assert await t.tags([theirs.key]) == {theirs.key: ("t",)}

    await database.calls.transact(of_calls)
    await database.timers.schedule_timers([entry(mine), entry(theirs)])
    assert await database.executions.begin([(execution, envelope(mine)), (other_execution, envelope(theirs))]) == {
        execution.execution_id
    }
    assert await change(database, running(mine)) == {mine.key}
    assert (await load(database, theirs.key)) == msgspec.structs.replace(theirs, tags=())
    assert await database.timers.mark_fired([(mine.key, mine.due_at)], NOW) == 1
    assert await database.timers.find_due([TENANT], 0, NOW * 2, 10) == []
    assert await database.timers.find_due([OTHER_TENANT], 0, NOW * 2, 10) == [entry(theirs)]
    assert await database.timers.due_tenants(0, NOW * 2, 10) == [OTHER_TENANT]
    await database.executions.finish([(end(execution), envelope(mine))])
    (unfinished,) = (await database.executions.unfinished(10)).rows
    assert unfinished == other_execution[:5]
    await database.timers.delete_timers([mine.key])
    assert await database.timers.find_due([OTHER_TENANT], 0, NOW * 2, 10) == [entry(theirs)]
    assert await database.calls.transact(lambda t: t.delete_waiting([mine.key])) == set()
    await change(database, finished(theirs))
    assert await database.calls.transact(lambda t: t.purge(NOW * 2 - EVER, -EVER, 10)) == 1
    assert await load(database, mine.key) is not None
    assert await database.calls.transact(lambda t: t.tags([mine.key])) == {mine.key: ("more",)}


async def test_a_reference_requires_a_call_of_the_same_tenant(database: AgentDatabase) -> None:
    mine = call()
    await insert(database, mine)
    await database.timers.schedule_timers([entry(in_other_tenant(mine))])
    assert await database.executions.begin([(start(in_other_tenant(mine)), envelope(mine))]) == set()
    await database.calls.transact(lambda t: t.add_tags([(in_other_tenant(mine).key, "t")]))
    for table in TABLES[1:]:
        assert await rows(database, f"SELECT * FROM {table}") == [], table
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        await write(
            database,
            lambda session: session.count(
                "INSERT INTO service_call_tags (tenant_id, service_call_id, tag, submitted_at)"
                f" VALUES ('{OTHER_TENANT}', '{mine.service_call_id}', 't', '2027-01-01T00:00:00.000000Z')",
                (),
            ),
        )


async def test_appended_messages_are_announced_after_the_commit_in_order(database: AgentDatabase) -> None:
    reported: list[OutboxRow] = []
    database.outbox.on_appended(reported.extend)
    one = call()
    envelopes = [envelope(one, causation_id=new_id()) for _ in range(300)]

    async def work(t: Transaction) -> None:
        await t.append(envelopes[:200])
        await t.append(envelopes[200:])
        assert reported == []

    await database.calls.transact(work)
    assert [row.envelope for row in reported] == envelopes
    assert reported == await database.outbox.unpublished(0, 1_000)
    assert [row.number for row in reported] == sorted({row.number for row in reported})
    await append(database, envelope(one))
    assert reported[-1].number > reported[-2].number
