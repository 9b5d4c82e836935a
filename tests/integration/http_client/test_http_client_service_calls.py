"""Requests of service calls: delivery, results, and which are never sent twice."""

from __future__ import annotations

import asyncio
from typing import Any

from callback_receivers import OK, Peer, answer_with, closing_at_the_second, keep_answering, send
from tests.support.cases import each

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.plain import METHODS
from tocsin.model.answer import NoResponse, Response
from tocsin.ports.http import Reply

TIMEOUT_408 = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
TOOK = Reply(200, (("content-length", "11"),), b'{"ok":true}', False)


@each("method", METHODS)
async def test_every_method(method: str, receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        while request := await peer.request():
            await peer.send(OK[:-11] if request[0].startswith("HEAD") else OK)

    receiver = await receive(script)
    body = None if method in {"GET", "HEAD"} else b"\x00\xffbody"
    for _ in range(2):
        result = await send(client, receiver.url + "?a=b", method, headers=(("X-Own", "1"),), body=body)
        assert result.outcome == TOOK._replace(body=b"" if method == "HEAD" else b'{"ok":true}')
        assert result.sent_at is not None
        assert result.duration_us > 0
    line, headers, arrived = receiver.requests[1]
    assert line == f"{method} /hook?a=b HTTP/1.1"
    assert (headers["x-own"], arrived) == ("1", body or b"")
    assert ("content-length" in headers) == (body is not None)
    assert not any(name.startswith("webhook-") for name in headers)
    assert receiver.connections == 1


async def test_response_headers_are_reported_including_repeated_ones(receive: Any, client: Any) -> None:
    head = b"HTTP/1.1 201 Made\r\nSet-Cookie: a=1\r\nset-cookie:  b=2 \r\nX-Umlaut: \xe4\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx-trailer: 1\r\n\r\n"
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    receiver = await receive(answer_with(interim, chunked))
    expected = (("Set-Cookie", "a=1"), ("set-cookie", "b=2"), ("X-Umlaut", "ä"), ("transfer-encoding", "chunked"))
    for _ in range(2):
        assert (await send(client, receiver.url)).outcome == Reply(201, expected, b"ab", False)
    assert receiver.connections == 1


async def test_http_client_and_requests_use_separate_connections(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    for _ in range(3):
        assert (await client.call(receiver.url)).outcome == Response(200, b'{"ok":true}')
        assert (await send(client, receiver.url)).outcome == TOOK
    assert receiver.connections == 2


async def test_headers_are_bounded_in_number(receive: Any, client_with: Any) -> None:
    receiver = await receive(
        answer_with(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + b"x: 1\r\n" * 50 + b"retry-after: 1\r\n\r\n")
    )
    client = client_with(limits=CallbackLimits(response_headers_max=3))
    assert (await send(client, receiver.url)).outcome == Reply(
        200, (("content-length", "0"), *[("x", "1")] * 2), b"", False
    )


async def test_headers_are_bounded_in_bytes(receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(b"HTTP/1.1 200 OK\r\n" + b"x: 1\r\n" * 50_000))
    outcome = (await send(client, receiver.url)).outcome
    assert isinstance(outcome, NoResponse)
    assert outcome.code == "BAD_RESPONSE"


@each("framing", [b"content-length: 104857600", b"x: y"])
async def test_a_huge_body_is_cut_and_not_read(framing: bytes, receive: Any, client: Any) -> None:
    sent_bytes = 0

    async def script(peer: Peer) -> None:
        nonlocal sent_bytes
        await peer.request()
        await peer.send(b"HTTP/1.1 200 X\r\n%b\r\n\r\n" % framing)
        for _ in range(1_600):
            await peer.send(b"x" * 65_536)
            sent_bytes += 65_536

    receiver = await receive(script)
    outcome = (await send(client, receiver.url, "GET")).outcome
    assert isinstance(outcome, Reply)
    assert (outcome.truncated, outcome.body) == (True, b"x" * CallbackLimits().response_body_bytes_max)
    await receiver.closed.wait()
    # What fits into the sockets' buffers is out of our hands.
    assert sent_bytes < 50_000_000


async def test_redirects_are_reported_as_responses(receive: Any, client: Any) -> None:
    receiver = await receive(
        answer_with(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
    )
    outcome = (await send(client, receiver.url, "GET")).outcome
    assert isinstance(outcome, Reply)
    assert outcome.status == 302
    assert len(receiver.requests) == 1


# -- never sent twice


@each("parting", [b"", TIMEOUT_408])
@each("method", ["PUT", "DELETE", "GET", "OPTIONS"])
async def test_an_idempotent_request_is_replayed_on_a_fresh_connection(
    method: str, parting: bytes, receive: Any, client: Any
) -> None:
    receiver = await receive(closing_at_the_second(parting))
    for _ in range(2):
        assert (await send(client, receiver.url, method)).outcome == TOOK
    assert (receiver.connections, len(receiver.requests)) == (2, 3)


@each("method", ["POST", "PATCH"])
async def test_a_request_that_is_not_idempotent_is_not_replayed(method: str, receive: Any, client: Any) -> None:
    receiver = await receive(closing_at_the_second(b""))
    assert (await send(client, receiver.url, method)).outcome == TOOK
    outcome = (await send(client, receiver.url, method)).outcome
    assert isinstance(outcome, NoResponse)
    assert outcome.code == "CONNECTION_CLOSED"
    assert (receiver.connections, len(receiver.requests)) == (1, 2)


async def test_a_closing_connection_is_not_reused(receive: Any, client: Any) -> None:
    """Unsolicited data closes an idle connection, reported a moment later: non-idempotent requests must not use it."""
    receiver = await receive(keep_answering)
    assert (await send(client, receiver.url)).outcome == TOOK
    (connection,) = client.caller._calls._pool.open
    connection.data_received(OK)
    assert (await send(client, receiver.url)).outcome == TOOK
    assert receiver.connections == 2


async def test_a_408_is_the_response_of_a_request_that_is_not_idempotent(receive: Any, client: Any) -> None:
    receiver = await receive(closing_at_the_second(TIMEOUT_408))
    assert (await send(client, receiver.url)).outcome == TOOK
    outcome = (await send(client, receiver.url)).outcome
    assert isinstance(outcome, Reply)
    assert outcome.status == 408
    assert len(receiver.requests) == 2


async def test_a_request_that_is_not_idempotent_uses_only_recently_used_connections(
    receive: Any, client_with: Any
) -> None:
    receiver = await receive(keep_answering)
    client = client_with(limits=CallbackLimits(reuse_idle_max_us=0))
    for method, connections in (("POST", 1), ("POST", 2), ("PATCH", 3), ("GET", 3), ("PUT", 3)):
        assert (await send(client, receiver.url, method)).outcome == TOOK
        assert receiver.connections == connections
        if connections > 1:
            # The one that was too old makes room for the new one.
            await receiver.closed.wait()


async def test_a_stale_connection_is_closed_when_the_limit_is_one(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    client = client_with(limits=CallbackLimits(reuse_idle_max_us=0, agent_connections_max=1))
    for _ in range(3):
        assert (await send(client, receiver.url)).outcome == TOOK
    assert receiver.connections == 3


# -- nothing is sent


async def test_invalid_requests_are_refused(client: Any) -> None:
    for changes, detail in (
        ({"url": "ftp://x/"}, "the URL is not an http or https URL"),
        ({"method": "TRACE"}, "the method is 'TRACE'; use one of"),
        ({"method": "GET", "body": b""}, "the body can't be sent with GET"),
        ({"headers": (("host", "x"),)}, "headers: host is set by the server"),
        ({"headers": (("x", "a\r\nb: c"),)}, "headers: 'x' has a value"),
    ):
        result = await send(client, **{"url": "http://127.0.0.1:1/", **changes})
        assert isinstance(result.outcome, NoResponse)
        assert (result.outcome.code, result.outcome.final, result.sent_at) == ("INVALID_REQUEST", True, None)
        assert result.outcome.detail.startswith(detail)


async def test_egress_is_refused(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    result = await send(client_with(egress=EgressPolicy()), receiver.url)
    assert isinstance(result.outcome, NoResponse)
    assert (result.outcome.code, result.outcome.final, result.sent_at) == ("EGRESS_REFUSED", True, None)
    assert receiver.connections == 0


async def test_time_out_and_shutdown(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.closed_by_client()

    receiver = await receive(script)
    # Long enough for a busy machine to connect and send.
    result = await send(client, receiver.url, timeout_us=500_000)
    assert result.outcome == NoResponse("TIMEOUT", "no complete response within 0.5 s")
    waiting = asyncio.ensure_future(send(client, receiver.url))
    await asyncio.sleep(0)
    await client.caller.close()
    assert (await waiting).outcome == NoResponse("SHUTDOWN")
    assert (await send(client, receiver.url)).outcome == NoResponse("SHUTDOWN")
