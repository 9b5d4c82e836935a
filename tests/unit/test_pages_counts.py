"""Counts of tabs: shared, bounded, and never waited for."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.cases import each

from tocsin.model.errors import Unavailable
from tocsin.web.pages import counts
from tocsin.web.pages.counts import BoundedCount, Counts, Numbers


class Reads:
    """Counts that are read when `go` is set."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = self.at_once = self.most_at_once = 0
        self.failure: Exception | None = None

    async def __call__(self) -> Numbers:
        self.begun += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.go.wait()
        finally:
            self.at_once -= 1
        if self.failure is not None:
            raise self.failure
        return {"pending": BoundedCount(self.begun)}


@each("number, more, short", [(0, False, "0"), (12, False, "12"), (1_500, True, "1,500+"), (0, True, "")])
def test_number_on_a_tab_states_whether_there_are_more(number: int, more: bool, short: str) -> None:
    assert BoundedCount(number, more).short == short


async def test_page_does_not_wait_for_a_count_that_goes_on_and_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_WAIT_S", 0.001)
    kept, reads = Counts[str](), Reads()
    assert await kept.of("a", reads) == await kept.of("a", reads) == {}
    assert await kept.of("b", reads) == {}
    assert (reads.begun, reads.most_at_once) == (1, 1)
    reads.go.set()
    reading = kept._scopes["a"]._reading
    assert reading is not None
    await reading
    assert await kept.of("a", reads) == {"pending": BoundedCount(1)}
    assert reads.most_at_once == 1
    await kept.close()


async def test_counts_of_a_store_that_does_not_respond_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_INTERVAL_S", 0.0)
    kept, reads = Counts[str](), Reads()
    reads.go.set()
    assert await kept.of("a", reads) == {"pending": BoundedCount(1)}
    reads.failure = Unavailable("the store is away")
    assert await kept.of("a", reads) == {"pending": BoundedCount(1)}
    await kept.close()


async def test_count_that_goes_on_is_not_ended_by_those_of_other_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_WAIT_S", 0.001)
    monkeypatch.setattr(counts, "_SCOPES_MAX", 2)
    monkeypatch.setattr(counts, "_INTERVAL_S", 3_600.0)
    kept, reads = Counts[str](), Reads()
    for scope in ("a", "b", "c"):
        assert await kept.of(scope, reads) == {}
    readings = [scope._reading for scope in kept._scopes.values() if scope._reading is not None]
    reads.go.set()
    await asyncio.gather(*readings)
    assert (await kept.of("a", reads), await kept.of("b", reads)) == (
        {"pending": BoundedCount(1)}, {"pending": BoundedCount(2)},
    )  # fmt: skip
    # Now others may take their place.
    await kept.of("c", reads)
    assert list(kept._scopes) == ["b", "c"]
    await kept.close()


@each(
    "known, status, body",
    [(None, 204, b""), (BoundedCount(0), 200, b""), (BoundedCount(12), 200, b"12"), (BoundedCount(0, True), 200, b"")],
)
def test_badge_stays_while_its_number_is_unknown(known: BoundedCount | None, status: int, body: bytes) -> None:
    response = counts.badge(known)
    assert (response.status_code, response.body) == (status, body)


async def test_scope_that_was_not_asked_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_SCOPES_MAX", 2)
    kept, reads = Counts[str](), Reads()
    reads.go.set()
    for scope in ("a", "b", "a", "c", "a"):
        await kept.of(scope, reads)
    assert reads.begun == 3
    await kept.of("b", reads)
    assert reads.begun == 4
    await kept.close()
