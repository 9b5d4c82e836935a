"""After a rotation, on every database: which of the agent's texts are encrypted again, and what is counted."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.agent_database import NOW, OTHER_TENANT, TENANT, append, call, change, envelope, insert, load, new_id
from tocsin.ports.bus import Envelope
from tocsin.sealing import KeySeals
from tocsin.service_calls import resealing
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CallStatus, RequestSpec, StartExecution
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.ports import Change, SealedColumn, ServiceCall
from tocsin.service_calls.resealing import CallResealing
from tocsin.stores.service_calls.database import AgentDatabase

FIRST, SECOND = b"1" * 32, b"2" * 32
BEFORE, AFTER = KeySeals([FIRST]), KeySeals([SECOND, FIRST])
FORMER, PRESENT = BEFORE.ids[0], AFTER.ids[0]
FINISHED = {"status": CallStatus.SUCCEEDED, "watch_at": None}


def sealed(of: str = TENANT, **fields: object) -> ServiceCall:
    """A call whose header is encrypted under the former key, for a tenant."""
    header = BEFORE.seal("Bearer token", f"tenant:{of}")
    return call(request_spec=RequestSpec("POST", "http://example.test/x", {"authorization": header}), **fields)


async def test_what_goes_on_or_can_be_retried_is_encrypted_again_once(
    database: AgentDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resealing, "_PAGE_ROWS", 2)
    monkeypatch.setattr(resealing, "_PAUSE_S", 0)
    looks = msgspec.Raw(msgspec.json.encode(f"tsl1.{FORMER}.{'a' * 60}"))
    waiting, failed, over = sealed(), sealed(watch_at=None, failure="x", status=CallStatus.FAILED), sealed(**FINISHED)
    # A secret of another tenant can't be opened; what looks like one in a body is none.
    broken, similar = sealed(OTHER_TENANT), call(request_spec=RequestSpec("POST", "http://example.test/x", body=looks))
    await insert(database, waiting, failed, over, broken, similar, *(call() for _ in range(5)))
    work = CallResealing(database.sealed, AFTER)
    assert await work.reseal([FORMER]) == (2, {FORMER: 1})
    for each in (waiting, failed):
        stored = await load(database, each.key)
        assert stored is not None and stored.request_spec.headers["authorization"].startswith(f"tsl1.{PRESENT}.")
    for each in (over, broken, similar):
        stored = await load(database, each.key)
        assert stored is not None and stored.request_spec == each.request_spec
    # Nothing is counted twice.
    assert await work.reseal([FORMER]) == (0, {FORMER: 1})


def order(of: ServiceCall) -> Envelope:
    """The order to execute it."""
    message = StartExecution(of.service_call_id, new_id(), of.request_spec)
    return envelope(of, "StartExecution", payload=msgspec.Raw(msgspec.json.encode(message)))


async def test_a_call_whose_failure_was_dismissed_can_be_retried_without_the_former_key(
    database: AgentDatabase,
) -> None:
    failed = sealed(watch_at=None, failure="x", status=CallStatus.FAILED, finished_at=NOW, execution_id=new_id())
    await insert(database, failed)
    dismissed = service_call.dismiss(failed, failed.execution_id or "")
    assert dismissed is not None
    await change(database, Change(failed, dismissed.after))
    assert await CallResealing(database.sealed, AFTER).reseal([FORMER]) == (1, {FORMER: 0})
    stored = await load(database, failed.key)
    assert stored is not None
    retried = service_call.retry(stored, now_us=NOW, new_id=new_id, limits=AgentLimits())
    assert retried is not None
    (ordered,) = [message for message in retried.messages if isinstance(message, StartExecution)]
    header = ordered.request_spec.headers["authorization"]
    assert KeySeals([SECOND]).open(header, f"tenant:{TENANT}") == "Bearer token"


async def test_an_order_counts_as_left_until_it_is_published(
    database: AgentDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resealing, "_PAGE_ROWS", 2)
    monkeypatch.setattr(resealing, "_PAUSE_S", 0)
    ordered = sealed(**FINISHED)
    await insert(database, ordered)
    numbers = await append(database, *(envelope(ordered) for _ in range(4)), order(ordered), order(call()))
    work = CallResealing(database.sealed, AFTER)
    assert await work.reseal([FORMER]) == (0, {FORMER: 1})
    await database.outbox.mark_published(numbers, NOW)
    assert await work.reseal([FORMER]) == (0, {FORMER: 0})


async def test_a_page_looks_at_no_more_rows_than_its_limit(database: AgentDatabase) -> None:
    """However few have a secret: a search for the next text might read a whole table in one statement."""
    await insert(database, *(call() for _ in range(6)))
    last = sealed(service_call_id="ffffffff-ffff-7fff-bfff-ffffffffffff")
    await insert(database, last)
    found, pages = [], 0
    after = None
    while pages == 0 or after is not None:
        texts, after = await database.sealed.page(SealedColumn.REQUEST, FORMER, after, 3)
        found += [text.key for text in texts]
        pages += 1
    assert ([tuple(key) for key in found], pages) == ([last.key], 3)
