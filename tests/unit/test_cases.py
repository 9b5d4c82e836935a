"""Cases in one test: all run, and those that fail are named."""

from __future__ import annotations

import pytest
from tests.support.cases import each


def test_all_failures_are_reported_with_their_values() -> None:
    seen = []

    @each("number, text", [(1, "a"), (2, "b"), (3, "c")])
    def only_two(number: int, text: str) -> None:
        seen.append(text)
        assert number == 2

    with pytest.raises(BaseExceptionGroup) as raised:
        only_two()
    assert seen == ["a", "b", "c"]
    assert [error.__notes__ for error in raised.value.exceptions] == [["number=1, text='a'"], ["number=3, text='c'"]]


async def test_coroutines_are_awaited() -> None:
    @each("number", [1, 2])
    async def never_two(number: int) -> None:
        assert number != 2

    with pytest.raises(BaseExceptionGroup, match="cases that failed: 1"):
        await never_two()
