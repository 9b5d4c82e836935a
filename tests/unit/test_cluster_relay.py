"""Requests that one node serves for another: whoever asked always hears."""

from __future__ import annotations

import asyncio

from tests.support.peers import Pair

from tocsin.cluster.wire import HttpAnswer


async def asked(pair: Pair) -> HttpAnswer:
    """The answer to a request, over a connection."""
    await pair.meet()
    asking = asyncio.create_task(pair.link.request("GET", b"/x", [], b""))
    while not asking.done():
        await pair.turn()
    return await asking


async def test_an_answer_comes_back() -> None:
    pair = Pair()
    pair.serves = b"here"
    answer = await asked(pair)
    assert (answer.status, answer.body) == (200, b"here")
    pair.end()


async def test_an_answer_that_is_too_large_for_a_message_is_said_to_be() -> None:
    pair = Pair(frame_bytes_max=1_000)
    pair.serves = bytes(2_000)
    answer = await asked(pair)
    assert answer.status == 500
    assert b"cluster.frame_bytes_max" in answer.body
    pair.end()


async def test_a_defect_is_answered_and_reported() -> None:
    pair = Pair()
    pair.serves = None
    answer = await asked(pair)
    assert answer.status == 500
    failed = [task for task in pair.ended if task.exception() is not None]
    assert [repr(task.exception()) for task in failed] == ["RuntimeError('a defect')"]
    pair.end()
