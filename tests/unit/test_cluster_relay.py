"""Requests that one node serves for another: whoever asked always hears."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.peers import Pair

from tocsin.cluster.link import NotSent
from tocsin.cluster.wire import HttpAnswer
from tocsin.model.errors import Unavailable


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
    assert b"a message between nodes has at most 1000" in answer.body
    pair.end()


async def test_a_defect_is_answered_and_reported() -> None:
    pair = Pair()
    pair.serves = None
    answer = await asked(pair)
    assert answer.status == 500
    failed = [task for task in pair.ended if task.exception() is not None]
    assert [repr(task.exception()) for task in failed] == ["RuntimeError('a defect')"]
    pair.end()


async def test_a_request_to_a_node_that_has_gone_may_go_elsewhere() -> None:
    pair = Pair()
    pair.reachable = False
    with pytest.raises(NotSent):
        await pair.link.request("POST", b"/x", [], b"")
    pair.end()


async def test_a_node_that_stops_says_which_requests_it_has_not_looked_at() -> None:
    pair = Pair()
    await pair.meet()
    seen = asyncio.create_task(pair.link.request("POST", b"/seen", [], b""))
    await pair.turn(to_asker=False)
    missed = asyncio.create_task(pair.link.request("POST", b"/missed", [], b""))
    assert pair.session is not None
    pair.session.leave()
    # What had been answered before it left still comes; what came afterwards was not looked at.
    await pair.turn()
    assert (await seen).status == 200
    with pytest.raises(NotSent):
        await missed
    pair.end()


async def test_whether_a_request_was_served_is_unknown_when_its_connection_breaks() -> None:
    pair = Pair()
    await pair.meet()
    sent = asyncio.create_task(pair.link.request("POST", b"/x", [], b""))
    await pair.turn(to_owner=False)
    pair.link.lost("broken")
    with pytest.raises(Unavailable) as unknown:
        await sent
    assert not isinstance(unknown.value, NotSent)
    pair.end()
