"""The ports of the timer module, the execution module and the outbox, on every database."""

from __future__ import annotations

import asyncio
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
    end,
    entry,
    envelope,
    insert,
    new_id,
    rows,
    start,
    waits,
)
from tocsin.model.errors import RotationPending
from tocsin.model.secrets import SigningSecrets
from tocsin.service_calls.messages import CallKey, CallStatus
from tocsin.service_calls.ports import LoggedExecution, OutboxRow
from tocsin.stores.service_calls.database import AgentDatabase, agent_database
from tocsin.stores.service_calls.tenant_secrets import SqlTenantSecrets

HOUR_US = 3_600_000_000

# ------------------------------------------------------------------ timer_schedules


async def test_schedules_are_found_in_due_order_across_tenants(database: AgentDatabase) -> None:
    calls = [call((TENANT, OTHER_TENANT)[n % 2], due_at=NOW + (7 * n) % 10) for n in range(10)]
    await insert(database, *calls)
    await database.timers.schedule_timers([entry(c) for c in calls])
    due = sorted((entry(c) for c in calls if c.due_at <= NOW + 6), key=lambda e: e.due_at)
    assert await database.timers.find_due([TENANT, OTHER_TENANT, new_id()], 0, NOW + 6, 100) == due
    assert await database.timers.find_due([TENANT, OTHER_TENANT], 0, NOW + 6, 3) == due[:3]
    assert await database.timers.find_due([], 0, NOW + 6, 3) == []
    assert await database.timers.next_due_at(NOW - 1) == NOW


async def test_tenants_with_due_schedules_are_ordered_by_the_earliest(database: AgentDatabase) -> None:
    tenants = [new_id() for _ in range(5)]
    calls = [call(tenant, due_at=NOW + 10 - n) for n, tenant in enumerate(tenants) for _ in range(3)]
    await insert(database, *calls)
    await database.timers.schedule_timers([entry(c) for c in calls])
    assert await database.timers.due_tenants(0, NOW + 9, 10) == tenants[:0:-1]
    assert await database.timers.due_tenants(0, NOW + 9, 2) == [tenants[4], tenants[3]]
    assert await database.timers.due_tenants(0, NOW + 5, 10) == []


async def test_a_schedule_is_replaced_only_by_a_later_one(database: AgentDatabase) -> None:
    one = call()
    await insert(database, one)
    await database.timers.schedule_timers([entry(one, due_at=NOW + 3), entry(one, due_at=NOW + 1)])
    assert await database.timers.find_due([TENANT], 0, NOW + 5, 10) == [entry(one, due_at=NOW + 3)]
    moved = entry(one, due_at=NOW + 5, correlation_id=new_id(), registered_at=NOW + 1)
    await database.timers.schedule_timers([moved])
    waiting = moved._replace(registered_at=NOW)
    await database.timers.schedule_timers([entry(one, due_at=NOW + 4)])
    assert await database.timers.find_due([TENANT], 0, NOW + 5, 10) == [waiting]
    assert await database.timers.mark_fired([(one.key, NOW + 3)], NOW + 6) == 0
    assert await database.timers.mark_fired([(one.key, NOW + 5)], NOW + 6) == 1
    assert await database.timers.mark_fired([(one.key, NOW + 5)], NOW + 7) == 0
    await database.timers.schedule_timers([entry(one, due_at=NOW + 5)])
    assert await database.timers.next_due_at(0) is None
    await database.timers.schedule_timers([entry(one, due_at=NOW + 9)])
    assert await database.timers.find_due([TENANT], 0, NOW * 2, 10) == [entry(one, due_at=NOW + 9)]


async def test_only_the_schedule_of_a_missing_call_is_dropped(database: AgentDatabase) -> None:
    here, gone = call(), call()
    await insert(database, here)
    await database.timers.schedule_timers([entry(gone), entry(here)])
    assert await database.timers.find_due([TENANT], 0, NOW * 2, 10) == [entry(here)]
    assert await database.timers.mark_fired([(gone.key, gone.due_at), (here.key, here.due_at)], NOW) == 1


async def test_schedules_are_deleted_once(database: AgentDatabase) -> None:
    one, two = call(), call()
    await insert(database, one, two)
    await database.timers.schedule_timers([entry(one), entry(two)])
    for _ in range(2):
        await database.timers.delete_timers([one.key, CallKey(TENANT, new_id())])
    assert await database.timers.find_due([TENANT], 0, NOW * 2, 10) == [entry(two)]
    await database.timers.delete_timers([])


# ------------------------------------------------------------------ suspended_executions


async def test_orders_that_wait_for_a_flow_are_read_in_their_order(database: AgentDatabase) -> None:
    two, one, three, gone = call(OTHER_TENANT), call(), call(), call()
    await insert(database, one, two, three)
    first, second, third = waits(two, "a"), waits(one, "a"), waits(three, "b:1")
    added = await database.suspended.suspend([third, second, first, waits(gone, "a")])
    assert added == {order.execution_id for order in (first, second, third)}
    assert await database.suspended.suspend([first, second._replace(place="c")]) == set()
    assert await database.suspended.suspend([]) == set()
    assert (await database.suspended.first("a", 10)).rows == [first, second]
    assert (await database.suspended.first("a", 1)).rows == [first]
    assert (await database.suspended.first("b:", 10)).rows == []
    assert await database.suspended.places("", 10) == [("a", 2), ("b:1", 1)]
    assert await database.suspended.places("", 1) == [("a", 2)]
    assert await database.suspended.places("a", 10) == [("b:1", 1)]


async def test_an_execution_that_begins_is_no_longer_suspended(database: AgentDatabase) -> None:
    one, two = call(), call()
    await insert(database, one, two)
    first, second = waits(one, "k"), waits(two, "k")
    await database.suspended.suspend([first, second])
    begun = start(one, first.execution_id)
    assert await database.executions.begin([(begun, envelope(one))], [first[:3]]) == {first.execution_id}
    assert (await database.suspended.first("k", 10)).rows == [second]
    # Its order comes again.
    assert await database.suspended.suspend([first]) == set()
    # One that was logged before the order was suspended goes with the next attempt to begin it.
    assert await database.executions.begin([(begun, envelope(one))], [first[:3], second[:3]]) == set()
    assert await database.suspended.places("", 10) == []


async def test_orders_are_reported_once_and_only_while_they_wait(database: AgentDatabase) -> None:
    one, two = call(), call()
    await insert(database, one, two)
    early, late = waits(one, "k"), waits(two, "k", suspended_at=NOW + 5)
    await database.suspended.suspend([early, late])
    assert (await database.suspended.unreported(NOW, 10)).rows == []
    assert (await database.suspended.unreported(NOW + 5, 10)).rows == [early]
    assert (await database.suspended.unreported(NOW + 6, 10)).rows == [early, late]
    assert (await database.suspended.unreported(NOW + 6, 1)).rows == [early]
    events = [envelope(one) for _ in range(3)]
    await database.suspended.report([(early, events[0])], NOW)
    await database.suspended.report([(early, events[1]), (late, events[2]), (waits(call(), "k"), events[1])], NOW)
    await database.suspended.report([], NOW)
    assert [row.envelope for row in await database.outbox.unpublished(0, 10)] == [events[0], events[2]]
    assert (await database.suspended.unreported(NOW + 6, 10)).rows == []


async def test_orders_go_with_their_call(database: AgentDatabase) -> None:
    one = call()
    await insert(database, one)
    await database.suspended.suspend([waits(one, "k")])
    await database.calls.transact(lambda transaction: transaction.delete_waiting([one.key]))
    assert await database.suspended.places("", 10) == []


# ------------------------------------------------------------------ http_execution_log


async def test_an_execution_begins_once_with_its_event(database: AgentDatabase) -> None:
    one, two = call(), call()
    await insert(database, one, two)
    first, second = start(one, request_body=None), start(two)
    events = [envelope(one, "ExecutionStarted") for _ in range(5)]
    assert await database.executions.begin([(first, events[0]), (first, events[1])]) == {first.execution_id}
    assert await database.executions.begin([(first, events[2]), (second, events[3])]) == {second.execution_id}
    assert await database.executions.begin([(second, events[4])]) == set()
    assert [row.envelope for row in await database.outbox.unpublished(0, 10)] == [events[0], events[3]]
    assert sorted((await database.executions.unfinished(10)).rows) == sorted([first[:5], second[:5]])
    assert len((await database.executions.unfinished(1)).rows) == 1


async def test_only_the_execution_of_a_missing_call_is_left_out(database: AgentDatabase) -> None:
    here, gone = call(), call()
    await insert(database, here)
    events = [envelope(gone), envelope(here)]
    begun = [(start(gone), events[0]), (start(here), events[1])]
    assert await database.executions.begin(begun) == {begun[1][0].execution_id}
    assert [row.envelope for row in await database.outbox.unpublished(0, 10)] == events[1:]
    assert await database.executions.begin([]) == set()


async def test_the_order_of_a_call_that_was_deleted_takes_no_effect_once_its_id_is_used_again(
    database: AgentDatabase,
) -> None:
    former = call(status=CallStatus.RETRYING)
    await insert(database, former)
    assert await database.calls.transact(lambda transaction: transaction.delete_waiting([former.key])) == {former.key}
    present = msgspec.structs.replace(former, execution_id=new_id())
    await insert(database, present)
    # The bus delivers the first order again.
    assert await database.suspended.suspend([waits(former, "k")]) == set()
    assert await database.executions.begin([(start(former), envelope(former))]) == set()
    assert await database.outbox.unpublished(0, 10) == []
    assert await database.suspended.suspend([waits(present, "k")]) == {present.execution_id}
    assert await database.executions.begin([(start(present), envelope(present))]) == {present.execution_id}


async def test_an_execution_finishes_once_with_its_event(database: AgentDatabase) -> None:
    one, two, three = call(), call(), call()
    await insert(database, one, two, three)
    begun, other = start(one), start(two)
    await database.executions.begin([(begun, envelope(one)), (other, envelope(two))])
    (last,) = [row.number for row in await database.outbox.unpublished(0, 10)][-1:]
    ended = end(begun, response_body="nul \0", error_message="odd")
    events = [envelope(one) for _ in range(4)]
    unknown = end(start(call()))
    assert await database.executions.finish([(ended, events[0]), (unknown, events[1])]) == {begun.execution_id}
    late = end(begun, response_status=500)
    assert await database.executions.finish([(late, events[2])]) == set()
    failed = end(other, response_status=None, response_headers=None, response_body=None, error_message="no answer")
    assert await database.executions.finish([(failed, events[3])]) == {other.execution_id}
    assert [row.envelope for row in await database.outbox.unpublished(last, 10)] == [events[0], events[3]]
    assert (await database.executions.unfinished(10)).rows == []
    shown = [each for of in (one, two) for each in await database.queries.executions(of.key)]
    assert [(e.execution_id, e.response_status, e.response_body, e.error_message) for e in shown] == [
        (begun.execution_id, 200, "nul \ufffd", "odd"),
        (other.execution_id, None, None, "no answer"),
    ]
    assert shown[0].response_headers == ended.response_headers
    assert shown[1].response_headers is None
    third = start(three)
    await database.executions.begin([(third, envelope(three))])
    keys = [row[:3] for row in (begun, other, third, unknown)]
    assert await database.executions.find(keys) == {
        begun.execution_id: LoggedExecution(begun, ended._replace(response_body="nul \ufffd")),
        other.execution_id: LoggedExecution(other, failed),
        third.execution_id: LoggedExecution(third, None),
    }
    assert await database.executions.find([(OTHER_TENANT, *keys[0][1:])]) == {}
    assert await database.executions.find([]) == {}
    report = envelope(one)
    await database.executions.report([report])
    assert (await database.outbox.unpublished(last, 10))[-1].envelope == report


# ------------------------------------------------------------------ outbox


async def test_unpublished_messages_are_read_in_order_by_pages(database: AgentDatabase) -> None:
    one = call()
    envelopes = [envelope(one, payload=msgspec.Raw(b'{"serviceCallId": 1.50}')) for _ in range(5)]
    numbers = await append(database, *envelopes)
    assert await database.outbox.unpublished(0, 2) == list(map(OutboxRow, numbers[:2], envelopes[:2]))
    assert await database.outbox.unpublished(numbers[1], 9) == list(map(OutboxRow, numbers[2:], envelopes[2:]))


async def purge(database: AgentDatabase, before_us: int, limit: int) -> int:
    """Deletes the messages that were published or suspended before the instant."""
    return await database.outbox.purge(before_us - EVER, -EVER, limit)


async def test_published_and_suspended_messages_are_not_read_again(database: AgentDatabase) -> None:
    numbers = await append(database, *(envelope(call()) for _ in range(5)))
    await database.outbox.mark_published(numbers[:2], NOW)
    await database.outbox.mark_published([*numbers[:1], 10_000], NOW + 1)
    await database.outbox.note_failure(numbers[2], 3, "refused")
    await database.outbox.suspend(numbers[3], "too \0 large", NOW + 2)
    await database.outbox.suspend(numbers[0], "published already", NOW + 2)
    assert [row.number for row in await database.outbox.unpublished(0, 10)] == [numbers[2], numbers[4]]
    kept = await rows(database, "SELECT id, attempts, last_error FROM outbox WHERE last_error IS NOT NULL ORDER BY id")
    assert kept == [(numbers[2], 3, "refused"), (numbers[3], 0, "too \ufffd large")]
    assert await purge(database, NOW, 10) == 0
    assert await purge(database, NOW + 1, 1) == 1
    assert await purge(database, NOW + 1, 10) == 1
    assert await rows(database, "SELECT id FROM outbox ORDER BY id") == [(number,) for number in numbers[2:]]


async def test_suspended_messages_are_deleted_with_those_published_meanwhile(database: AgentDatabase) -> None:
    numbers = await append(database, *(envelope(call()) for _ in range(5)))
    await database.outbox.suspend(numbers[0], "too large", NOW)
    await database.outbox.mark_published(numbers[1:3], NOW + 1)
    await database.outbox.suspend(numbers[3], "too large", NOW + 2)
    assert await purge(database, NOW, 10) == 0
    assert await purge(database, NOW + 2, 2) == 2
    assert await purge(database, NOW + 2, 2) == 1
    assert await rows(database, "SELECT id FROM outbox ORDER BY id") == [(number,) for number in numbers[3:]]
    assert await purge(database, NOW + 3, 10) == 1
    assert await rows(database, "SELECT id FROM outbox ORDER BY id") == [(numbers[4],)]


async def test_a_clock_that_is_ahead_purges_no_messages(database: AgentDatabase, database_url: str) -> None:
    """SQLite has no clock but the node's."""
    now_us = time.time_ns() // 1_000
    numbers = await append(database, envelope(call()), envelope(call()))
    await database.outbox.mark_published(numbers[:1], now_us - 2 * HOUR_US)
    await database.outbox.suspend(numbers[1], "too large", now_us - 2 * HOUR_US)
    gone = 2 if database_url.startswith("sqlite") else 0
    assert await database.outbox.purge(now_us + 9_000 * HOUR_US, 4 * HOUR_US, 10) == gone
    assert await database.outbox.purge(now_us, HOUR_US, 10) == 2 - gone


async def test_what_follows_from_a_suspended_message_is_appended_with_it_once(database: AgentDatabase) -> None:
    one, two = envelope(call()), envelope(call())
    (number,) = await append(database, one)
    await database.outbox.suspend(number, "too large", NOW, two)
    await database.outbox.suspend(number, "too large", NOW, two)
    assert [row.envelope for row in await database.outbox.unpublished(0, 10)] == [two]


async def test_message_numbers_are_never_reused(database: AgentDatabase) -> None:
    numbers = await append(database, envelope(call()), envelope(call()))
    await database.outbox.mark_published(numbers, NOW)
    await purge(database, NOW + 1, 10)
    (again,) = await append(database, envelope(call()))
    assert again > max(numbers)


# ------------------------------------------------------------------ instants


async def test_instants_keep_their_microseconds(database: AgentDatabase) -> None:
    moments = [0, 1, 999_999, 1_000_000, NOW, 253_402_300_799_999_999]
    calls = [call(due_at=moment, submitted_at=moment, watch_at=moment) for moment in moments]
    await insert(database, *calls)
    loaded = await database.calls.transact(lambda t: t.load([c.key for c in calls]))
    assert loaded == {c.key: c for c in calls}
    await database.timers.schedule_timers([entry(c) for c in calls])
    assert [e.due_at for e in await database.timers.find_due([TENANT], 0, moments[-1], 10)] == moments


# ------------------------------------------------------------------ tenant_secrets


async def test_secrets_belong_to_one_tenant_and_a_refused_change_stores_nothing(database: AgentDatabase) -> None:
    secrets = database.secrets
    assert await secrets.find([TENANT, OTHER_TENANT]) == {}

    def refuse(known: SigningSecrets) -> SigningSecrets:
        raise RotationPending("not now")

    with pytest.raises(RotationPending):
        await secrets.change(TENANT, refuse)
    assert await secrets.find([TENANT]) == {}
    assert await secrets.change(TENANT, lambda known: known.rotated("a", NOW, 10)) == SigningSecrets("a")
    assert await SqlTenantSecrets(database).find([TENANT, OTHER_TENANT]) == {TENANT: SigningSecrets("a")}


async def test_concurrent_changes_of_secrets_are_not_lost(database: AgentDatabase) -> None:
    """Also for the first changes, when there is no row yet."""
    changes = [
        database.secrets.change(TENANT, lambda known, n=n: known.rotated(f"s{n}", NOW, 10, force=True))
        for n in range(3)
    ]
    made = await asyncio.gather(*changes)
    (stored,) = (await database.secrets.find([TENANT])).values()
    assert set(stored.at(NOW)) == {"s0", "s1", "s2"}
    assert stored in made


async def test_whether_there_are_calls_is_seen_beside_the_agent(database: AgentDatabase, database_url: str) -> None:
    if database_url == "sqlite://":
        pytest.skip("nobody else sees a database in memory")
    beside = agent_database(database_url)
    found = [await beside.has_calls()]
    await insert(database, call())
    found.append(await beside.has_calls())
    assert found == [False, True]
