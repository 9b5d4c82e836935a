"""Requests take turns at reckoning, and the event loop goes on in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from tocsin.tasks import TURN_S, Turns

PIECES_PER_TURN = 4


class Log:
    """What happened, in order: the pieces of requests, and a dot for each pass of the event loop. Each piece takes the same
    time, of which a turn has `PIECES_PER_TURN`."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.events = ""

    def pieces(self, request: str, number: int) -> Iterator[int]:
        for each in range(number):
            self.now_s += TURN_S / PIECES_PER_TURN
            self.events += request
            yield each

    async def passes(self) -> None:
        while True:
            self.events += "."
            await asyncio.sleep(0)


def test_the_event_loop_goes_on_after_each_turn_whatever_number_of_requests_ask_at_once() -> None:
    async def main() -> str:
        log = Log()
        turns = Turns(lambda: log.now_s)
        passing = asyncio.create_task(log.passes())
        requests = {name: turns.each(log.pieces(name, 3 * PIECES_PER_TURN)) for name in "abcdefgh"}
        done = await asyncio.gather(*requests.values())
        passing.cancel()
        assert done == [list(range(3 * PIECES_PER_TURN))] * len(requests)
        return log.events

    events = asyncio.run(main())
    turns = [turn for turn in events.split(".") if turn]
    assert max(map(len, turns)) <= PIECES_PER_TURN
    # One request a turn; each has waited for no more than one turn of every other.
    assert all(len(set(turn)) == 1 for turn in turns)
    assert "".join(turn[0] for turn in turns) == "abcdefgh" * 3


def test_short_requests_share_a_turn() -> None:
    async def main() -> str:
        log = Log()
        turns = Turns(lambda: log.now_s)
        passing = asyncio.create_task(log.passes())
        await asyncio.gather(*(turns.run(next, log.pieces(name, 1)) for name in "abcdefgh"))
        passing.cancel()
        return log.events

    events = asyncio.run(main())
    assert events.replace(".", "") == "abcdefgh"
    assert all(len(turn) <= PIECES_PER_TURN for turn in events.split("."))


def test_an_error_or_a_cancelled_request_leaves_the_turn_to_the_next() -> None:
    async def main() -> None:
        # Each look at the clock is a second later, so each turn has one piece.
        turns = Turns(partial(next, count()))
        with pytest.raises(ZeroDivisionError):
            await turns.run(lambda: 1 // 0)
        canceled = asyncio.create_task(turns.run(lambda: 1))
        waiting = asyncio.create_task(turns.run(lambda: 2))
        await asyncio.sleep(0)
        canceled.cancel()
        assert await waiting == 2
        with pytest.raises(asyncio.CancelledError):
            await canceled

    asyncio.run(main())
