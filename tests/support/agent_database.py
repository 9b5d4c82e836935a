"""The agent's database on each kind of server, empty, and records to store in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import pytest_asyncio

from tests.support.postgresql import PostgresServer
from tocsin.model.ids import uuid7_text
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey, CallStatus, RequestSpec
from tocsin.service_calls.ports import Change, ExecutionEnd, ExecutionStart, ServiceCall, SuspendedOrder, TimerEntry
from tocsin.stores.service_calls.database import AgentDatabase, agent_database
from tocsin.stores.service_calls.statements import Session, Work

T = TypeVar("T")

NOW = 1_800_000_000_123_456
#: What is kept for minus a hundred years is over by the database's clock, too, which knows nothing of NOW.
EVER = 100 * 366 * 86_400_000_000
_numbers: Iterator[int] = count(1)

KINDS = ("sqlite", "sqlite-memory", "postgresql")


@pytest_asyncio.fixture(params=KINDS)
async def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("shared_postgresql")
        return await server.create_database()
    return "sqlite://" if request.param == "sqlite-memory" else f"sqlite:///{tmp_path / 'agent.db'}"


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[AgentDatabase]:
    """An open database."""
    opened = agent_database(database_url)
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


def new_id() -> str:
    """A UUID v7; later ones are greater."""
    return uuid7_text(NOW // 1_000, next(_numbers))


TENANT, OTHER_TENANT = new_id(), new_id()


def call(tenant_id: str = TENANT, **fields: Any) -> ServiceCall:
    """A call that waits, and that an execution was ordered of."""
    made = ServiceCall(
        tenant_id=tenant_id,
        service_call_id=new_id(),
        name="reminder",
        status=CallStatus.SCHEDULED,
        submitted_at=NOW,
        due_at=NOW + 1_000_000,
        request_spec=RequestSpec(
            "POST", "http://example.test/x", {"a": "b"}, msgspec.Raw(b'{"z": 1.0, "a": "\\u0000"}')
        ),
        correlation_id=new_id(),
        fingerprint="f",
        watch_at=NOW + 2_000_000,
        execution_id=new_id(),
    )
    return msgspec.structs.replace(made, **fields)


def running(before: ServiceCall, **fields: Any) -> Change:
    """The change that orders its execution."""
    changed = {"status": CallStatus.RUNNING, "execution_id": new_id(), "executions": before.executions + 1, **fields}
    return Change(before, msgspec.structs.replace(before, **changed))


def envelope(of: ServiceCall, type: str = "ServiceCallScheduled", **fields: Any) -> Envelope:
    """A message about a call."""
    made = Envelope(
        id=new_id(),
        type=type,
        tenant_id=of.tenant_id,
        aggregate_id=of.service_call_id,
        timestamp_ms=NOW // 1_000,
        correlation_id=of.correlation_id,
        causation_id=None,
        payload=msgspec.Raw(f'{{"serviceCallId": "{of.service_call_id}"}}'.encode()),
    )
    return msgspec.structs.replace(made, **fields)


def entry(of: ServiceCall, **fields: Any) -> TimerEntry:
    """The schedule of a call."""
    made = TimerEntry(of.tenant_id, of.service_call_id, of.correlation_id, of.due_at, NOW)
    return made._replace(**fields)


def waits(of: ServiceCall, place: str, execution_id: str | None = None, **fields: Any) -> SuspendedOrder:
    """The order of its execution, which waits for a flow."""
    execution_id = execution_id or of.execution_id or new_id()
    made = SuspendedOrder(
        of.tenant_id,
        of.service_call_id,
        execution_id,
        place,
        NOW,
        envelope(of, "StartExecution"),
    )
    return made._replace(**fields)


def start(of: ServiceCall, execution_id: str | None = None, **fields: Any) -> ExecutionStart:
    """The start of its execution."""
    made = ExecutionStart(
        of.tenant_id,
        of.service_call_id,
        execution_id or of.execution_id or new_id(),
        of.correlation_id,
        NOW,
        "http://example.test/x",
        "POST",
        {"a": "b"},
        "body",
    )
    return made._replace(**fields)


def end(of: ExecutionStart, **fields: Any) -> ExecutionEnd:
    """The end of its execution."""
    made = ExecutionEnd(
        of.tenant_id, of.service_call_id, of.execution_id, NOW + 7, 200, {"content-type": "text/plain"}, "fine", None
    )
    return made._replace(**fields)


async def insert(database: AgentDatabase, *calls: ServiceCall) -> None:
    """Inserts new calls."""
    assert len(await database.calls.transact(lambda t: t.insert(calls))) == len(calls)


async def change(database: AgentDatabase, *changes: Change) -> set[CallKey]:
    """The keys that were written."""
    return await database.calls.transact(lambda t: t.change(changes))


async def load(database: AgentDatabase, key: CallKey) -> ServiceCall | None:
    """One call."""
    return (await database.calls.transact(lambda t: t.load([key]))).get(key)


async def append(database: AgentDatabase, *envelopes: Envelope) -> list[int]:
    """Appends messages; returns their numbers."""

    await database.calls.transact(lambda t: t.append(envelopes))
    return [row.number for row in (await database.outbox.unpublished(0, 10_000))[-len(envelopes) :]]


async def rows(database: AgentDatabase, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""

    async def work(session: Session) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await session.rows(sql, ())]

    return await database.read(work)


async def write(database: AgentDatabase, work: Work[T]) -> T:
    """Runs one transaction."""
    return await database.write(work)
