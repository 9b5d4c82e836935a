"""The audit trail of a node whose store fails, and how long entries are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.support.faulty_store import Fault, FaultyStore

from tocsin import administration
from tocsin.model.audit import AuditAction, AuditQuery, AuditSource
from tocsin.ports.audit import Actor
from tocsin.server.audit import Audit
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock

WHO = Actor("k", "10.0.0.1", AuditSource.API)


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.UNKNOWN_DONE, Fault.UNKNOWN_LOST])
async def test_entries_that_could_not_be_stored_are_counted_and_retried(fault: Fault) -> None:
    failures: list[int] = []
    store = FaultyStore(MemoryStore())
    audit = Audit(store, "n", 100, lambda: failures.append(1))
    store.script("put_record", fault)
    with capture_logs() as lines:
        await audit.write(AuditAction.SIGN_IN, WHO)
    await audit.write(AuditAction.SIGN_OUT, WHO)
    assert [(line["log_level"], line["action"], line["key"]) for line in lines] == [("error", "sign_in", "k")]
    assert len(failures) == 1
    await audit.refresh()
    await audit.refresh()
    assert [entry.action for entry in (await audit.read(AuditQuery())).entries] == ["sign_out", "sign_in"]


async def test_entries_are_removed_after_their_retention() -> None:
    now_s = 1_000.0
    audit = Audit(MemoryStore(), "n", 5_000, lambda: None, lambda: now_s)
    await audit.write(AuditAction.SIGN_IN, WHO)
    await audit.refresh()
    now_s += 4_000
    await audit.write(AuditAction.SIGN_OUT, WHO)
    await audit.refresh()
    assert len((await audit.read(AuditQuery())).entries) == 2
    now_s += 4_000
    await audit.refresh()
    assert [entry.action for entry in (await audit.read(AuditQuery())).entries] == ["sign_out"]


@pytest.mark.parametrize("ahead", ["node", "store"])
async def test_no_entry_is_removed_by_a_clock_that_is_ahead(ahead: str) -> None:
    clock = FakeClock()
    now_s = clock.now_us() / 1e6
    audit = Audit(MemoryStore(clock), "n", 5_000, lambda: None, lambda: now_s)
    await audit.write(AuditAction.SIGN_IN, WHO)
    if ahead == "node":
        now_s += 366 * 86_400
    else:
        clock.jump(366 * 86_400_000_000)
    await audit.refresh()
    assert len((await audit.read(AuditQuery())).entries) == 1


async def test_a_filter_that_matches_little_returns_short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "_PAGE", 10)
    monkeypatch.setattr(administration, "_AUDIT_SCAN_MAX", 30)
    now_s = 1_000.0
    audit = Audit(MemoryStore(), "n", 5_000, lambda: None, lambda: now_s)
    for number in range(100):
        now_s += 1
        await audit.write(AuditAction.SIGN_OUT if number in (5, 97) else AuditAction.SIGN_IN_FAILED, WHO)
    query = AuditQuery(actions=frozenset({AuditAction.SIGN_OUT}))
    sizes, found = [], []
    while True:
        page = await audit.read(query)
        sizes.append(len(page.entries))
        found += [entry.at for entry in page.entries]
        if page.cursor is None:
            break
        query = replace(query, cursor=page.cursor)
    assert found == [1_098_000_000, 1_006_000_000]
    assert sizes == [1, 0, 0, 1]
