"""Service calls that jobs delete, on every database: which ones a job finds, in pages however small its reads are."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from tests.support.agent_database import NOW, OTHER_TENANT, TENANT, call, insert, new_id
from tocsin.model.job import RowFilter
from tocsin.ports.agent_calls import Tenants
from tocsin.service_calls.api import waiting
from tocsin.service_calls.api.waiting import DeletableCalls
from tocsin.service_calls.messages import CallStatus, DeleteServiceCall, JobFilter, Message, RequestSpec
from tocsin.service_calls.ports import CallFilter, ServiceCall
from tocsin.stores.service_calls import queries
from tocsin.stores.service_calls.database import AgentDatabase

ALL = RowFilter(NOW + 100)


def reading(database: AgentDatabase, commands: list[tuple[Message, str]] | None = None) -> DeletableCalls:
    async def command(message: Message, tenant_id: str, correlation_id: str) -> None:
        assert commands is not None
        commands.append((message, tenant_id))

    return DeletableCalls(database.queries, command)


async def found(database: AgentDatabase, tenants: Tenants, wanted: RowFilter) -> list[str]:
    """All calls, page by page; every other page is left behind its first row, as by a node that is lost."""
    read, ids = reading(database), []
    cursor: str | None = None
    for number in count():
        page, end = await read.page(tenants, wanted, cursor)
        if number % 2 and page:
            page, end = page[:1], page[0].cursor
        ids += [each.service_call_id for each in page]
        if end is None:
            break
        cursor = end
    return ids


def _calls() -> list[ServiceCall]:
    """Calls of two tenants in all states, several at each instant."""
    return [
        call(
            (TENANT, TENANT, OTHER_TENANT)[n % 3],
            submitted_at=NOW + n // 4,
            status=list(CallStatus)[n % 5],
            name=("Charge order", "reminder")[n % 2],
            tags=("eu",) if n % 4 else (),
        )
        for n in range(60)
    ]


@pytest.mark.parametrize("rows", [1, 7, 100])
async def test_waiting_calls_that_match_are_found_newest_first(
    database: AgentDatabase, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(waiting, "_READ_ROWS", rows)
    monkeypatch.setattr(queries, "SEARCHED_MAX", 9)
    calls = _calls()
    await insert(database, *calls)
    newest = sorted(calls, key=lambda each: (each.submitted_at, each.service_call_id), reverse=True)
    for changes, matches in (
        ({}, lambda each: True),
        ({"status": "Retrying"}, lambda each: each.status is CallStatus.RETRYING),
        ({"tags": ("eu",)}, lambda each: each.tags == ("eu",)),
        ({"name": "ORDER"}, lambda each: "order" in each.name),
        (
            {"created_after": NOW + 3, "created_before": NOW + 9},
            lambda each: NOW + 3 <= each.submitted_at < NOW + 9,
        ),
    ):
        wanted = msgspec.structs.replace(ALL, **changes)
        for tenants in (TENANT, OTHER_TENANT, None):
            assert await found(database, tenants, wanted) == [
                each.service_call_id
                for each in newest
                if each.status in (CallStatus.SCHEDULED, CallStatus.RETRYING)
                and tenants in (None, each.tenant_id)
                and matches(each)
            ], (changes, tenants)
    assert await found(database, new_id(), ALL) == []


async def test_call_is_due_when_it_is_attempted_next(database: AgentDatabase) -> None:
    first = call(due_at=NOW + 5)
    again = call(due_at=NOW + 5, next_attempt_at=NOW + 9, status=CallStatus.RETRYING)
    await insert(database, first, again)
    for bounds, wanted in (
        ({"execute_before": NOW + 9}, first),
        ({"execute_after": NOW + 9}, again),
    ):
        row_filter = msgspec.structs.replace(ALL, **bounds)
        assert await found(database, TENANT, row_filter) == [wanted.service_call_id]


async def test_destination_is_a_part_of_the_url_behind_its_scheme(database: AgentDatabase) -> None:
    spec = RequestSpec("POST", "https://Shop.test/Hooks/http", {})
    one = call(request_spec=spec)
    await insert(database, one, call())
    for part, number in (("shop.test/hooks", 1), ("https", 0), ("test/", 2)):
        assert len(await found(database, TENANT, msgspec.structs.replace(ALL, destination=part))) == number, part


async def test_no_call_is_found_by_a_name_that_a_search_does_not_find(database: AgentDatabase) -> None:
    names = ["Stra\u00dfe", "STRASSE", "\u212aelvin", "kelvin", "100%", "\u00c4rger", "\u00e4rger"]
    await insert(database, *(call(name=name) for name in names))
    for name in (*names, "%", "_", "KELVIN"):
        searched, _ = await database.queries.search(CallFilter(TENANT, name=name))
        ids = await found(database, TENANT, msgspec.structs.replace(ALL, name=name))
        assert set(ids) <= {each.service_call_id for each in searched}, name
        assert ids or name == "_", name


async def test_deletion_is_a_command_with_the_filter(database: AgentDatabase) -> None:
    one = call()
    await insert(database, one)
    commands: list[tuple[Message, str]] = []
    read = reading(database, commands)
    (page, _) = await read.page(None, ALL, None)
    await read.delete(page[0], ALL, "c")
    assert commands == [(DeleteServiceCall(one.service_call_id, JobFilter(NOW + 100)), TENANT)]
