"""Requests that one node serves for another: every request gets an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.peers import Pair

from tocsin.cluster.link import NotSent
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.model.errors import Unavailable


def relayed(pair: Pair, method: str, target: bytes) -> Coroutine[Any, Any, RelayedResponse]:
    return pair.link.ask(RelayedResponse, lambda number: RelayedRequest(number, method, target, [], b""))


async def asked(pair: Pair) -> RelayedResponse:
    """The response to a request over a connection."""
    await pair.meet()
    asking = asyncio.create_task(relayed(pair, "GET", b"/x"))
    while not asking.done():
        await pair.turn()
    return await asking


async def test_a_response_is_returned(pair: Pair) -> None:
    pair.serves = b"here"
    answer = await asked(pair)
    assert (answer.status, answer.body) == (200, b"here")


async def test_a_response_too_large_for_a_message_is_an_error(pairs: Callable[..., Pair]) -> None:
    pair = pairs(frame_bytes_max=1_000)
    pair.serves = bytes(2_000)
    answer = await asked(pair)
    assert answer.status == 500
    assert b"a message between nodes has at most 1000" in answer.body


async def test_a_defect_is_answered_and_reported(pair: Pair) -> None:
    pair.serves = None
    answer = await asked(pair)
    assert answer.status == 500
    failed = [task for task in pair.ended if task.exception() is not None]
    assert [repr(task.exception()) for task in failed] == ["RuntimeError('a defect')"]


async def test_a_request_to_an_unreachable_node_may_go_elsewhere(pair: Pair) -> None:
    pair.reachable = False
    with pytest.raises(NotSent):
        await relayed(pair, "POST", b"/x")


async def test_a_stopping_node_reports_which_requests_it_has_not_processed(pair: Pair) -> None:
    await pair.meet()
    seen = asyncio.create_task(relayed(pair, "POST", b"/seen"))
    await pair.turn(to_asker=False)
    missed = asyncio.create_task(relayed(pair, "POST", b"/missed"))
    assert pair.session is not None
    pair.session.leave()
    # Responses from before it left still arrive; later requests were not processed.
    await pair.turn()
    assert (await seen).status == 200
    with pytest.raises(NotSent):
        await missed


async def test_a_lost_connection_leaves_a_request_in_doubt(pair: Pair) -> None:
    await pair.meet()
    sent = asyncio.create_task(relayed(pair, "POST", b"/x"))
    await pair.turn(to_owner=False)
    pair.link.lost("broken")
    with pytest.raises(Unavailable) as unknown:
        await sent
    assert not isinstance(unknown.value, NotSent)
