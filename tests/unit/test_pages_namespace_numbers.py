"""Numbers of the table of namespaces: bounded in time, and completed by pages that ask again."""

from __future__ import annotations

from typing import cast

import pytest

from tocsin.model.errors import Unavailable
from tocsin.timers.service import ListRequest, TimerService
from tocsin.web.pages.admin import numbers
from tocsin.web.pages.admin.numbers import NumberSource

SECOND = 1_000_000


class Counting:
    """Counts three timers in each namespace, but fails for those named bad."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    async def count(self, wanted: ListRequest) -> tuple[int, bool]:
        if str(wanted.scope).startswith("bad"):
            raise Unavailable("no answer")
        self.counted.append(str(wanted.scope))
        return 3, wanted.execute_after is not None


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Counting:
    monkeypatch.setattr(numbers, "_TIMEOUT_S", 0)
    monkeypatch.setattr(numbers, "_AT_ONCE", 2)
    return Counting()


async def test_what_the_time_leaves_out_is_counted_first_by_the_next_page(service: Counting) -> None:
    source, names = NumberSource(cast(TimerService, service)), ["a", "bad", "b", "c", "d"]
    first = await source.of(names, 100 * SECOND)
    assert list(first) == ["a", "b"]
    assert first["a"].pending is not None and first["a"].due is not None
    assert (first["a"].pending.text, first["a"].due.text) == ("3", "3+")
    assert first["a"].due.link == "/timers?namespace=a&view=pending&due=next-1h"
    assert list(await source.of(names, 101 * SECOND)) == ["a", "b", "c", "d"]
    service.counted.clear()
    # All are fresh: nothing is counted again but what failed.
    assert list(await source.of(names, 102 * SECOND)) == ["a", "b", "c", "d"] and service.counted == []
    # The oldest first, while the others are still shown; after a minute without a count they are not.
    assert list(await source.of(names, 110 * SECOND)) == ["a", "b", "c", "d"]
    assert set(service.counted) == {"a", "b"}
    assert list(await source.of(names, 169 * SECOND)) == ["a", "b", "c", "d"]
    assert list(await source.of(names, 400 * SECOND)) == ["a", "b"]
