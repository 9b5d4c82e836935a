"""Every query of the agent uses an index, on every database.

PostgreSQL plans with sequential scans discouraged: on tables of a test's size they would often be the right choice, and
what counts is that an index can serve. On empty tables all indexes cost the same, so the choice between them means
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from tests.support.agent_database import (
    NOW,
    OTHER_TENANT,
    TENANT,
    call,
    end,
    entry,
    envelope,
    insert,
    new_id,
    start,
    waits,
)
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import WAITING, CallFilter, PagePosition
from tocsin.stores.service_calls import (
    executions,
    outbox,
    queries,
    sealed,
    service_calls,
    tenant_secrets,
    timer_schedules,
)
from tocsin.stores.service_calls.database import AgentDatabase
from tocsin.stores.service_calls.statements import Batch, Query, Session

ID = new_id()
KEYS = [(TENANT, ID), (TENANT, new_id())]
ONE = {"tenant": TENANT, "call": ID}
CALLS, TAGS, TIMERS, LOG = "pk_service_calls", "pk_service_call_tags", "pk_timer_schedules", "pk_http_execution_log"
SUSPENDED = "pk_suspended_executions"


class Case(NamedTuple):
    statement: Query | Batch
    index: str
    rows: list[tuple[Any, ...]] = []  # noqa: RUF012 - never changed
    scalars: dict[str, Any] = {}  # noqa: RUF012 - never changed
    #: Another index that serves as well; PostgreSQL's choice depends on how many tenants and rows are due.
    or_index: str = "none"


def _row(batch: Batch) -> list[tuple[Any, ...]]:
    """Any row: the plan does not depend on it."""
    return [tuple([None] * len(batch.given))]


CASES = {
    "load": Case(service_calls.LOAD, CALLS, KEYS),
    "find_many": Case(queries.FIND_MANY, CALLS, KEYS),
    "find_by_idempotency_key": Case(
        service_calls.FIND_BY_IDEMPOTENCY_KEY, "idx_service_calls_idempotency_key", [(TENANT, "k")]
    ),
    "change": Case(service_calls.CHANGE, CALLS, _row(service_calls.CHANGE)),
    "delete_waiting": Case(service_calls.DELETE_WAITING, CALLS, KEYS),
    "tags": Case(service_calls.TAGS, TAGS, KEYS),
    "submitted_at": Case(service_calls.SUBMITTED_AT, CALLS, KEYS),
    "remove_tags": Case(service_calls.REMOVE_TAGS, TAGS, [(TENANT, ID, "t")]),
    "to_watch": Case(service_calls.TO_WATCH, "idx_service_calls_watch_at", [], {"now_at": NOW, "most": 10}),
    "postpone": Case(service_calls.POSTPONE, CALLS, KEYS, {"watch_at": NOW}),
    "purge": Case(
        service_calls.PURGE, "idx_service_calls_finished_at", [], {"before_at": NOW, "kept_us": 1, "most": 10}
    ),
    "schedule": Case(timer_schedules.SCHEDULE, CALLS, _row(timer_schedules.SCHEDULE)),
    "delete_timers": Case(timer_schedules.DELETE, TIMERS, KEYS),
    "mark_fired": Case(timer_schedules.MARK_FIRED, TIMERS, [(*key, NOW) for key in KEYS], {"moment_at": NOW}),
    "next_due_at": Case(timer_schedules.NEXT_DUE_AT, "idx_timer_schedules_waiting", [], {"after_at": 0}),
    "due_tenants": Case(
        timer_schedules.DUE_TENANTS,
        "idx_timer_schedules_waiting",
        [],
        {"from_at": NOW, "now_at": NOW + 9, "among": 100, "most": 10},
    ),
    "find_due": Case(
        timer_schedules.FIND_DUE,
        "idx_timer_schedules_due_at",
        [(TENANT,), (OTHER_TENANT,)],
        {"from_at": NOW, "now_at": NOW + 9, "most": 10},
        "idx_timer_schedules_waiting",
    ),
    "find_secrets": Case(tenant_secrets.FIND, "pk_tenant_secrets", [(TENANT,), (OTHER_TENANT,)]),
    "lock_secrets": Case(tenant_secrets.LOCK, "pk_tenant_secrets", [], {"tenant": TENANT}),
    "put_secrets": Case(tenant_secrets.PUT, "pk_tenant_secrets", [], {"tenant": TENANT, "secrets": "{}"}),
    "begin": Case(executions.BEGIN, CALLS, _row(executions.BEGIN)),
    "finish": Case(executions.FINISH, LOG, _row(executions.FINISH)),
    "find_executions": Case(executions.FIND, LOG, [(*key, ID) for key in KEYS]),
    "unfinished": Case(executions.UNFINISHED, "idx_http_execution_log_unfinished", [], {"most": 10}),
    "suspend_order": Case(executions.SUSPEND, LOG, _row(executions.SUSPEND)),
    "delete_suspended": Case(executions.DELETE_SUSPENDED, SUSPENDED, [(*key, ID) for key in KEYS]),
    "report_suspended": Case(executions.REPORT, SUSPENDED, _row(executions.REPORT)),
    "first_suspended": Case(executions.FIRST, "idx_suspended_executions_place", [], {"place": "k", "most": 10}),
    "places": Case(executions.PLACES, "idx_suspended_executions_place", [], {"after": "k", "most": 10}),
    "unreported": Case(
        executions.UNREPORTED, "idx_suspended_executions_unreported", [], {"before_at": NOW, "kept_us": 1, "most": 10}
    ),
    "unpublished": Case(outbox.UNPUBLISHED, "idx_outbox_unpublished", [], {"after": 5, "most": 10}),
    "unpublished orders with a key": Case(
        sealed.UNPUBLISHED, "idx_outbox_unpublished", [], {"mark": "%k%", "after": 5, "most": 10}
    ),
    "mark_published": Case(outbox.MARK_PUBLISHED, "pk_outbox", [(1,), (2,)], {"moment_at": NOW}),
    "note_failure": Case(outbox.NOTE_FAILURE, "pk_outbox", [], {"number": 1, "attempts": 1, "last_error": "e"}),
    "suspend": Case(
        outbox.SUSPEND, "pk_outbox", [], {"number": 1, "moment_at": NOW, "last_error": "e"}, "idx_outbox_unpublished"
    ),
    "purge_outbox": Case(outbox.PURGE, "idx_outbox_published_at", [], {"before_at": NOW, "kept_us": 1, "most": 10}),
    "purge_suspended": Case(outbox.PURGE_SUSPENDED, "pk_outbox", [], {"before_at": NOW, "kept_us": 1, "most": 10}),
    "find": Case(queries.FIND, CALLS, [], ONE),
    "executions": Case(queries.EXECUTIONS, LOG, [], ONE),
    "trace_schedule": Case(queries.SCHEDULE, TIMERS, [], ONE),
    "of_request": Case(
        queries.of_request((TENANT, OTHER_TENANT)),
        "idx_service_calls_correlation_id",
        [],
        {"correlation": ID, "most": 10, "tenant_0": TENANT, "tenant_1": OTHER_TENANT},
    ),
    "of_request, any tenant": Case(
        queries.of_request(None), "idx_service_calls_correlation_id", [], {"correlation": ID, "most": 10}
    ),
    "counts": Case(queries.counts_of(TENANT), "idx_service_calls_status", [], {"tenant": TENANT, "most": 10}),
    "counts of tenants": Case(
        queries.counts_of((OTHER_TENANT,)), "idx_service_calls_newest", [], {"tenant_0": TENANT, "most": 10}
    ),
    "causes": Case(
        queries.causes_of(one=True, behind=False),
        "idx_service_calls_failures",
        [],
        {"tenant": TENANT, "since_at": NOW, "most": 9},
    ),
    "causes, next page": Case(
        queries.causes_of(one=True, behind=True),
        "idx_service_calls_failures",
        [],
        {"tenant": TENANT, "since_at": NOW, "most": 9, "before_at": NOW + 300, "before_id": ID},
    ),
    "causes of all, next page": Case(
        queries.causes_of(one=False, behind=True),
        "idx_service_calls_all_failures",
        [],
        {"since_at": NOW, "most": 9, "before_at": NOW + 300, "before_id": ID, "before_tenant": TENANT},
    ),
    "failures": Case(queries.FAILURES, CALLS, KEYS),
    "unfinished calls": Case(queries.UNFINISHED, "idx_service_calls_watch_at", [], {"most": 10}),
    "attempted_urls": Case(queries.ATTEMPTED_URLS, "idx_service_calls_watch_at", [], {"most": 10}),
    "trace_messages": Case(queries.MESSAGES, "idx_outbox_correlation_id", [], {"tenant": TENANT, "correlation": ID}),
}

FROM = {"submitted_from": NOW - 5, "submitted_to": NOW + 5}
AFTER = {"before": PagePosition(NOW, ID)}
PAGES = {
    "all": (CallFilter(TENANT), "idx_service_calls_submitted_at"),
    "range": (CallFilter(TENANT, **FROM, **AFTER), "idx_service_calls_submitted_at"),
    "status": (CallFilter(TENANT, frozenset({"Failed"}), **FROM), "idx_service_calls_status"),
    "statuses": (CallFilter(TENANT, frozenset({"Failed", "Running"}), **AFTER), "idx_service_calls_status"),
    "of a job": (CallFilter(TENANT, WAITING, **FROM, **AFTER), "idx_service_calls_status"),
    "tag": (CallFilter(TENANT, tags=("t",), **AFTER), "idx_service_call_tags_tag"),
    "tags": (CallFilter(TENANT, frozenset({"Failed"}), ("t", "u"), **FROM), "idx_service_call_tags_tag"),
    "correlation": (
        CallFilter(TENANT, frozenset({"Failed"}), ("t",), correlation_id="c", **FROM),
        "idx_service_calls_correlation_id",
    ),
}
SEARCHES = {
    "name": (CallFilter(TENANT, name="n", **AFTER), "idx_service_calls_submitted_at"),
    "name, status": (CallFilter(TENANT, frozenset({"Failed"}), name="n"), "idx_service_calls_status"),
    "name, tag": (CallFilter(TENANT, tags=("t",), name="n"), "idx_service_call_tags_tag"),
    "every tenant": (CallFilter(None, frozenset({"Failed"}), ("t",), correlation_id="c"), "idx_service_calls_newest"),
    "of a job, every tenant": (CallFilter(None, WAITING, **FROM, **AFTER), "idx_service_calls_newest"),
    "tenants": (CallFilter((TENANT, OTHER_TENANT), name="n", **FROM, **AFTER), "idx_service_calls_newest"),
}

#: SQLite's names for the indexes of primary keys.
SQLITE_NAMES = {
    CALLS: "sqlite_autoindex_service_calls_1",
    TAGS: "sqlite_autoindex_service_call_tags_1",
    TIMERS: "sqlite_autoindex_timer_schedules_1",
    LOG: "sqlite_autoindex_http_execution_log_1",
    SUSPENDED: "sqlite_autoindex_suspended_executions_1",
    "pk_tenant_secrets": "sqlite_autoindex_tenant_secrets_1",
    "pk_outbox": "INTEGER PRIMARY KEY",
}
OURS = (
    r"(service_calls|service_call_tags|calls|tags|timer_schedules|http_execution_log|logged|suspended_executions|"
    r"tenant_secrets|outbox|due|other_\d)"
)


async def explain(session: Session, text: str, values: Sequence[Any]) -> str:
    """The plan as the database prints it."""
    if not session.postgresql:
        return "\n".join(str(row[3]) for row in await session.rows(f"EXPLAIN QUERY PLAN {text}", values))
    await session.rows("SET LOCAL enable_seqscan = off", ())
    return "\n".join(str(row[0]) for row in await session.rows(f"EXPLAIN {text}", values))


def check(plan: str, index: str, kind: str) -> None:
    """Checks that the plan uses the index and scans no whole table."""
    if kind == "sqlite":
        assert re.search(rf"\b{re.escape(SQLITE_NAMES.get(index, index))}\b", plan), plan
        scanned = [line for line in plan.splitlines() if re.match(rf"SCAN {OURS}\b", line)]
        if index in (CALLS, TAGS, TIMERS, LOG, SUSPENDED):
            assert re.search(rf"{re.escape(SQLITE_NAMES[index])} \(tenant_id=\? AND service_call_id=\?", plan), plan
        # Walking along an index, to the first row or through a partial one, is not a scan of the table.
        assert all("USING" in line and "INDEX idx_" in line for line in scanned), plan
        assert "AUTOMATIC" not in plan, plan
    else:
        assert kind == "postgresql, empty" or re.search(rf"\b({index})\b", plan), plan
        assert not re.search(rf"Seq Scan on {OURS}\b", plan), plan


async def filled(database: AgentDatabase) -> None:
    """A database with rows, so that the planner has a choice."""
    calls = [call((TENANT, OTHER_TENANT)[n % 2], submitted_at=NOW + n, tags=("t", "u")) for n in range(400)]
    failed = {"status": CallStatus.FAILED, "execution_id": ID, "failure": "f"}
    ended = [
        call(
            (TENANT, OTHER_TENANT)[n % 2],
            finished_at=NOW + n,
            **(failed if n % 10 < 2 else {"status": CallStatus.SUCCEEDED}),
        )
        for n in range(400)
    ]
    await insert(database, *calls, *ended)
    await database.timers.schedule_timers([entry(c) for c in calls])
    executions = [start(c) for c in calls]
    await database.executions.begin([(e, envelope(c)) for e, c in zip(executions, calls, strict=True)])
    await database.executions.finish([(end(e), envelope(c)) for e, c in zip(executions[20:], calls[20:], strict=True)])
    waiting = [waits(c, f"k{number % 50}") for number, c in enumerate(calls)]
    await database.suspended.suspend(waiting)
    await database.suspended.report([(each, each.envelope) for each in waiting[20:]], NOW)
    numbers = [row.number for row in await database.outbox.unpublished(0, 1_000)]
    await database.outbox.mark_published(numbers[20:], NOW)

    await database.write(lambda session: session.rows("ANALYZE", ()))


@pytest.fixture(params=["empty", "filled"])
async def contents(request: pytest.FixtureRequest, database: AgentDatabase) -> str:
    """New tables, and tables with rows and statistics."""
    if request.param == "filled":
        await filled(database)
    return str(request.param)


def kind_of(session: Session, contents: str) -> str:
    """The kind of plan that `check` expects."""
    if not session.postgresql:
        return "sqlite"
    return "postgresql, empty" if contents == "empty" else "postgresql"


async def test_every_statement_uses_its_index(database: AgentDatabase, contents: str) -> None:
    async def work(session: Session) -> None:
        postgresql = session.postgresql
        for name, (statement, index, rows, scalars, or_index) in CASES.items():
            form = statement.form(postgresql)
            if isinstance(statement, Batch):
                values = statement.values(form, rows)
                values = values if postgresql else values[0]
            else:
                values = statement.values(form, rows, scalars)
            plan = await explain(session, form.text, values)
            if postgresql and or_index in plan:
                index = or_index
            check(f"{name}:\n{plan}", index, kind_of(session, contents))

    await database.write(work)


async def test_every_page_uses_its_index(database: AgentDatabase, contents: str) -> None:
    async def work(session: Session) -> None:
        pages = [(name, *page, queries.PageQuery(page[0]), False) for name, page in PAGES.items()]
        pages += [(name, *page, queries.PageQuery(page[0], queries.SEARCHED), True) for name, page in SEARCHES.items()]
        for name, wanted, index, asked, searches in pages:
            query = asked.search if searches else asked.page
            scalars = {**asked.values, **queries.part_of(wanted.limit, among=queries.SEARCHED_MAX)}
            form = query.form(session.postgresql)
            if session.postgresql and wanted.tags and wanted.statuses and not wanted.correlation_id:
                # The statistics show that few calls have that status, so the plan may start with them.
                index = "idx_service_call_tags_tag|idx_service_calls_status"
            values = query.values(form, [], scalars)
            plan = await explain(session, form.text, values)
            check(f"{name}:\n{plan}", index, kind_of(session, contents))

    await database.write(work)


def test_every_statement_has_a_plan_test() -> None:
    known = {id(case.statement) for case in CASES.values()}
    modules = (service_calls, timer_schedules, executions, outbox, queries)
    # Plain inserts read nothing.
    left = {
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Query | Batch) and id(value) not in known and not name.startswith("_")
    }
    assert {name.rpartition(".")[2] for name in left} == {"INSERT", "INSERT_TAGS"}
