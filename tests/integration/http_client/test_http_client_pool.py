"""The connection pool: which connection an attempt uses, dead connections, and shutdown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from callback_receivers import OK, Peer, an_invocation, answer_with, closing_at_the_second, keep_answering
from tests.support.cases import each

from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, Response
from tocsin.ports.http import Exchange

TOOK = Response(200, b'{"ok":true}')
TIMEOUT_408 = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


async def test_a_connection_is_reused(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    for _ in range(20):
        assert (await client.call(receiver.url)).outcome == TOOK
    assert (receiver.connections, len(receiver.requests)) == (1, 20)


async def test_each_attempt_in_flight_has_its_own_connection(receive: Any, client: Any) -> None:
    everyone = asyncio.Barrier(5)

    async def script(peer: Peer) -> None:
        while await peer.request():
            await everyone.wait()
            await peer.send(OK)

    receiver = await receive(script)
    for _ in range(3):
        outcomes = [(await call).outcome for call in [client.begin(receiver.url) for _ in range(5)]]
        assert outcomes == [TOOK] * 5
    assert receiver.connections == 5


async def test_five_hundred_at_once(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    for _ in range(2):
        exchanges = await asyncio.gather(*[client.begin(receiver.url) for _ in range(500)])
        assert {exchange.outcome for exchange in exchanges} == {TOOK}
    assert len(receiver.requests) == 1_000


async def test_many_destinations(receive: Any, client: Any) -> None:
    receivers = [await receive(keep_answering) for _ in range(40)]
    for _ in range(2):
        exchanges = await asyncio.gather(*[client.begin(receiver.url) for receiver in receivers])
        assert {exchange.outcome for exchange in exchanges} == {TOOK}
    assert [receiver.connections for receiver in receivers] == [1] * 40


async def test_the_next_call_from_inside_done_takes_the_same_connection(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = 50

    def again(call: asyncio.Future[Exchange]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            ended.set_result(None)
        else:
            client.begin(receiver.url).add_done_callback(again)

    client.begin(receiver.url).add_done_callback(again)
    await ended
    assert (receiver.connections, len(receiver.requests)) == (1, 50)


# -- dead idle connections


async def test_the_receiver_closes_an_idle_connection(receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(OK, close=True))
    for _ in range(5):
        assert (await client.call(receiver.url)).outcome == TOOK
    assert (receiver.connections, len(receiver.requests)) == (5, 5)


@each("parting", [b"", TIMEOUT_408])
async def test_a_request_on_a_reused_connection_that_closes_is_replayed(
    parting: bytes, receive: Any, client: Any
) -> None:
    receiver = await receive(closing_at_the_second(parting))
    first = await client.call(receiver.url)
    second = await client.call(receiver.url, message_id="m2")
    assert (first.outcome, second.outcome) == (TOOK, TOOK)
    assert receiver.connections == 2
    assert [headers["webhook-id"] for _, headers, _ in receiver.requests] == ["m1", "m2", "m2"]


async def test_a_connection_that_was_open_too_late_for_its_request_may_be_closed_as_idle(
    receive: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, loop = client.caller, asyncio.get_running_loop()
    connect = caller._connector.connect

    async def too_late(*arguments: Any) -> Any:
        opened = await connect(*arguments)
        # Before the sender is notified.
        loop.call_soon(caller._expired, next(iter(caller._in_flight)), 0)
        return opened

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number > 1:
            await peer.send(OK)

    receiver = await receive(script)
    with monkeypatch.context() as patched:
        patched.setattr(caller._connector, "connect", too_late)
        first = (await client.call(receiver.url)).outcome
    assert isinstance(first, NoResponse)
    assert (first.code, caller.connections) == ("TIMEOUT", 1)
    assert (await client.call(receiver.url, message_id="m2")).outcome == TOOK
    assert receiver.connections == 2
    assert [headers["webhook-id"] for _, headers, _ in receiver.requests] == ["m2", "m2"]


async def test_a_request_is_replayed_only_once(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number == 1:
            await peer.send(OK)
            await peer.request()

    receiver = await receive(script)
    assert (await client.call(receiver.url)).outcome == TOOK
    second = (await client.call(receiver.url)).outcome
    assert isinstance(second, NoResponse)
    assert second.code == "CONNECTION_CLOSED"
    assert (receiver.connections, len(receiver.requests)) == (2, 3)


async def test_a_request_is_not_replayed_after_a_byte_of_the_response(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.send(b"HTTP/1.1 2")

    receiver = await receive(script)
    assert (await client.call(receiver.url)).outcome == TOOK
    assert (await client.call(receiver.url)).outcome.code == "CONNECTION_CLOSED"
    assert (receiver.connections, len(receiver.requests)) == (1, 2)


async def test_a_408_on_a_fresh_connection_is_the_response(receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(TIMEOUT_408, close=True))
    assert (await client.call(receiver.url)).outcome == Response(408)
    assert len(receiver.requests) == 1


async def test_all_idle_connections_dead_at_once(receive: Any, client: Any) -> None:
    alive = asyncio.Event()
    everyone = asyncio.Barrier(20)

    async def script(peer: Peer) -> None:
        await peer.request()
        if not alive.is_set():
            await everyone.wait()
        await peer.send(OK)
        if alive.is_set():
            await keep_answering(peer)
        else:
            await peer.request()

    receiver = await receive(script)
    await asyncio.gather(*[client.begin(receiver.url) for _ in range(20)])
    alive.set()
    exchanges = await asyncio.gather(*[client.begin(receiver.url) for _ in range(20)])
    assert {exchange.outcome for exchange in exchanges} == {TOOK}
    assert len(receiver.requests) == 60


async def test_unsolicited_data_closes_an_idle_connection(receive: Any, client: Any) -> None:
    speak = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        if peer.number == 1:
            await speak.wait()
            await peer.send(OK)
        await peer.closed_by_client()

    receiver = await receive(script)
    assert (await client.call(receiver.url)).outcome == TOOK
    speak.set()
    await receiver.closed.wait()
    assert (await client.call(receiver.url)).outcome == TOOK
    assert receiver.connections == 2


# -- limits


async def test_an_idle_connection_is_closed_after_its_timeout(receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(idle_timeout_us=40_000))
    receiver = await receive(keep_answering)
    assert (await client.call(receiver.url)).outcome == TOOK
    await receiver.closed.wait()
    assert (await client.call(receiver.url)).outcome == TOOK
    assert receiver.connections == 2


async def test_idle_connections_per_destination_are_limited(receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(idle_connections_max=1))
    everyone = asyncio.Barrier(3)

    async def script(peer: Peer) -> None:
        while await peer.request():
            await everyone.wait()
            await peer.send(OK)

    receiver = await receive(script)
    for _ in range(2):
        await asyncio.gather(*[client.begin(receiver.url) for _ in range(3)])
    assert receiver.connections == 5


async def test_more_calls_than_connections_wait_their_turn(receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(connections_max=3))
    receiver = await receive(keep_answering)
    exchanges = await asyncio.gather(*[client.begin(receiver.url) for _ in range(100)])
    assert {exchange.outcome for exchange in exchanges} == {TOOK}
    assert receiver.connections == 3


@each("script", [keep_answering, answer_with(OK, close=True)])
async def test_destinations_take_turns_at_the_limit(script: Any, receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(connections_max=2))
    receivers = [await receive(script) for _ in range(5)]
    calls = [client.begin(receiver.url) for _ in range(10) for receiver in receivers]
    exchanges = await asyncio.gather(*calls)
    assert {exchange.outcome for exchange in exchanges} == {TOOK}


async def test_a_time_out_frees_its_connection(receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(connections_max=1))

    async def script(peer: Peer) -> None:
        if peer.number == 1:
            await peer.closed_by_client()
        else:
            await keep_answering(peer)

    receiver = await receive(script)
    first = client.begin(receiver.url, timeout_us=50_000)
    second = client.begin(receiver.url)
    assert (await first).outcome.code == "TIMEOUT"
    assert (await second).outcome == TOOK


async def test_a_failing_listener_does_not_affect_others(receive: Any, client: Any) -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: reported.append(str(context.get("exception")))
    )
    receiver = await receive(keep_answering)
    for url in (receiver.url, receiver.url, "nonsense"):
        ended = asyncio.Event()

        def fail(exchange: Exchange, ended: asyncio.Event = ended) -> None:
            ended.set()
            raise LookupError("the listener's fault")

        client.caller.invoke(an_invocation(url), fail)
        await ended.wait()
    assert (await client.call(receiver.url)).outcome == TOOK
    assert receiver.connections == 1
    assert reported == [str(LookupError("the listener's fault"))] * 3


# -- the end


async def test_destinations_without_connections_take_no_memory(receive: Any, client_with: Any) -> None:
    async def lookup(host: str) -> list[str]:
        if host.startswith("dead"):
            raise OSError("no such luck")
        return ["127.0.0.1"]

    limits = CallbackLimits(dns_names_cached_max=10, targets_cached_max=10, response_cache_entries_max=10)
    client = client_with(lookup=lookup, limits=limits)
    receiver = await receive(_echo_the_path)
    for n in range(200):
        dead = await client.call(f"http://dead{n}.example/")
        assert dead.outcome.code == "NAME_NOT_RESOLVED"
        exchange = await client.call(f"http://live{n}.example:{receiver.port}/{n}")
        assert exchange.outcome == Response(200, b"/%d" % n)
    caller = client.caller
    pool = caller._timers._pool
    assert len(pool._destinations) == caller.connections <= 200
    assert len(caller._timers._cache._entries) <= 10
    assert (len(caller._resolver._known), caller.resolving, caller._target.cache_info().currsize) == (10, 0, 10)
    await caller.close()
    assert (pool._destinations, pool.idle, pool.waiting) == ({}, {}, {})


async def _echo_the_path(peer: Peer) -> None:
    while request := await peer.request():
        path = request[0].split()[1].encode()
        await peer.send(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n%b" % (len(path), path))


async def test_close_ends_attempts_in_flight(receive: Any, client_with: Any) -> None:
    client = client_with(limits=CallbackLimits(connections_max=3), lookup=_never)
    arrived = asyncio.Barrier(3)

    async def script(peer: Peer) -> None:
        await peer.request()
        await arrived.wait()
        await peer.closed_by_client()

    receiver = await receive(script)
    answering = [client.begin(receiver.url) for _ in range(2)]
    resolving = client.begin("http://hooks.example/")
    waiting = [client.begin(receiver.url) for _ in range(3)]
    await arrived.wait()
    await client.caller.close()
    for call in (*answering, resolving, *waiting):
        assert (await call).outcome == NoResponse("SHUTDOWN")
    assert (await client.call(receiver.url)).outcome == NoResponse("SHUTDOWN")
    await client.caller.close()


async def test_close_ends_idle_connections(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    await client.call(receiver.url)
    await client.caller.close()
    await receiver.closed.wait()


async def _never(host: str) -> list[str]:
    await asyncio.Event().wait()
    return []
