"""Failures of service calls on every database: in which order and pages they are read, and when they leave the list."""

from __future__ import annotations

import msgspec

from tests.support.agent_database import NOW, OTHER_TENANT, TENANT, call, change, insert, load, new_id
from tocsin.model.failure import SEPARATOR
from tocsin.model.failure_groups import CALLS_GROUPED_BY, GroupKey
from tocsin.ports.agent_calls import CallFailure, CallFailurePlace
from tocsin.service_calls.api.failures import CallFailureFilter, CallFailures
from tocsin.service_calls.messages import CallStatus, Message
from tocsin.service_calls.ports import Change, ServiceCall
from tocsin.stores.service_calls.database import AgentDatabase

RETENTION_US = 1_000_000
GONE, DOWN = f"http://example.test/x{SEPARATOR}HTTP 410", f"http://example.test/x{SEPARATOR}TIMEOUT"


class Clock:
    def now_us(self) -> int:
        return NOW + 500

    def boottime_us(self) -> int:
        return NOW

    def ns(self) -> int:
        return NOW * 1_000


def failed(tenant: str = TENANT, at: int = NOW, failure: str | None = GONE, **fields: object) -> ServiceCall:
    ended = {"status": CallStatus.FAILED, "finished_at": at, "execution_id": new_id(), "watch_at": None}
    return call(tenant, **ended, failure=failure, **fields)


def reading(database: AgentDatabase, commands: list[tuple[Message, str]] | None = None) -> CallFailures:
    async def command(message: Message, tenant_id: str, correlation_id: str) -> None:
        assert commands is not None
        commands.append((message, tenant_id))

    return CallFailures(database.queries, command, Clock(), RETENTION_US)


async def every_id(calls: CallFailures, wanted: CallFailureFilter, limit: int) -> list[str]:
    """All failures, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page, cursor = await calls.members(wanted, limit, cursor)
        assert len(page) <= limit
        found += [each.service_call_id for each in page]
        if cursor is None:
            return found


async def test_failures_are_read_newest_first_in_pages(database: AgentDatabase) -> None:
    """Equal instants too, of one tenant, of several, and of all."""
    calls = [failed((TENANT, TENANT, OTHER_TENANT)[n % 3], NOW + n // 4) for n in range(20)]
    await insert(database, *calls, call(), failed(failure=None), failed(at=NOW - RETENTION_US))
    newest = sorted(calls, key=lambda each: (each.finished_at, each.service_call_id), reverse=True)
    read = reading(database)
    for tenants in (TENANT, (OTHER_TENANT,), (TENANT, OTHER_TENANT), (), None):
        wanted = [each.service_call_id for each in newest if tenants is None or each.tenant_id in tenants]
        for limit in (1, 3, 50):
            assert await every_id(read, CallFailureFilter(tenants), limit) == wanted, (tenants, limit)
    since = await every_id(read, CallFailureFilter(None, NOW + 3), 50)
    assert since == [each.service_call_id for each in newest if (each.finished_at or 0) >= NOW + 3]


async def test_failure_has_its_call(database: AgentDatabase) -> None:
    one = failed(tags=("b", "a"), next_attempt_at=NOW + 5)
    await insert(database, one)
    place = CallFailurePlace(NOW, one.service_call_id, TENANT)
    wanted = CallFailure(
        TENANT, one.service_call_id, NOW, GONE, "reminder", NOW + 5, one.execution_id or "", ("a", "b")
    )
    assert await database.queries.failures([place]) == [wanted]
    # Another end of the same call is another failure.
    assert await database.queries.failures([place._replace(failed_at=NOW + 1)]) == []
    assert await database.queries.failures([]) == []


async def test_failures_are_grouped_and_counted(database: AgentDatabase) -> None:
    calls = [failed(at=NOW + n, failure=(GONE, GONE, DOWN)[n % 3]) for n in range(30)]
    await insert(database, *calls, failed(OTHER_TENANT))
    read = reading(database)
    found = await read.groups(CallFailureFilter(TENANT), CALLS_GROUPED_BY, 10)
    assert [(each.key.error, each.key.tenant, each.count) for each in found.groups] == [
        ("HTTP 410", TENANT, 20),
        ("TIMEOUT", TENANT, 10),
    ]
    assert (found.total, found.further, found.at_least) == (30, 0, False)
    assert [each.service_call_id for each in found.groups[0].newest[:2]] == [
        calls[28].service_call_id,
        calls[27].service_call_id,
    ]
    together = await read.groups(CallFailureFilter(None), ("destination",), 10)
    assert [(each.key, each.count) for each in together.groups] == [(GroupKey(destination="http://example.test/x"), 31)]
    assert await read.count(CallFailureFilter(TENANT, group=GroupKey(error="TIMEOUT")), 50) == (10, False)
    assert await read.count(CallFailureFilter(TENANT), 7) == (7, True)


async def test_failure_leaves_the_list_with_its_column(database: AgentDatabase) -> None:
    one, other = failed(), failed()
    await insert(database, one, other)
    stored = await load(database, one.key)
    assert stored is not None
    assert stored.failure == GONE
    await change(database, Change(stored, msgspec.structs.replace(stored, failure=None)))
    assert await every_id(reading(database), CallFailureFilter(TENANT), 10) == [other.service_call_id]


async def test_dismissal_is_a_command_for_each_failure(database: AgentDatabase) -> None:
    calls = [failed(), failed(failure=DOWN), failed(OTHER_TENANT)]
    await insert(database, *calls)
    commands: list[tuple[Message, str]] = []
    read = reading(database, commands)
    assert await read.dismiss(CallFailureFilter(TENANT, group=GroupKey(error="HTTP 410")), "c") == (1, False)
    (sent,) = commands
    assert (sent[0].service_call_id, sent[1]) == (calls[0].service_call_id, TENANT)
