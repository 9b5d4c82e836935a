"""Two nodes of a cluster, with their link and session between them and no sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from tests.support.peers import Pair


@pytest.fixture
async def pairs() -> AsyncIterator[Callable[..., Pair]]:
    """Makes pairs with these limits, which end with the test."""
    made: list[Pair] = []

    def make(**limits: int) -> Pair:
        made.append(Pair(**limits))
        return made[-1]

    yield make
    for pair in made:
        pair.end()


@pytest.fixture
def pair(pairs: Callable[..., Pair]) -> Pair:
    """A pair with the usual limits."""
    return pairs()
