"""Responses to callbacks: valid, unusual and hostile ones."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import msgspec
from callback_receivers import OK, Peer, an_invocation, answer_with, keep_answering
from tests.support.cases import each

from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, Response

LIMITS = CallbackLimits()


async def test_an_ordinary_call(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    before_us = time.time_ns() // 1_000
    exchange = await client.call(receiver.url, headers={"x-own": "1"})
    assert exchange.outcome == Response(200, b'{"ok":true}')
    assert before_us <= exchange.sent_at <= time.time_ns() // 1_000
    assert exchange.duration_us > 0
    line, headers, body = receiver.requests[0]
    assert line == "POST /hook HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert headers["x-own"] == "1"
    assert json.loads(body)["payload"] == {"a": 1}


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

ANSWERS = {
    "no body": ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], Response(200)),
    "204": ([b"HTTP/1.1 204 No Content\r\n\r\n"], Response(204)),
    "204 with a length": ([b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n"], Response(204)),
    "304 with a length": ([b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"], Response(304)),
    "chunked": ([CHUNKED + b"2\r\nab\r\n3;x=y\r\ncde\r\n0\r\ntrailer: 1\r\n\r\n"], Response(200, b"abcde")),
    "chunked in pieces": ([CHUNKED, b"2\r", b"\na", b"b\r\n0", b"\r\n\r", b"\n"], Response(200, b"ab")),
    "byte by byte": ([bytes([byte]) for byte in OK], Response(200, b'{"ok":true}')),
    "head and body apart": ([OK[:-11], OK[-11:]], Response(200, b'{"ok":true}')),
    "interim answers": (
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\nlink: </x>\r\n\r\n" + OK],
        Response(200, b'{"ok":true}'),
    ),
    "retry-after": (
        [b"HTTP/1.1 503 Busy\r\nRETRY-AFTER:  120 \r\ncontent-length: 0\r\n\r\n"],
        Response(503, b"", "120"),
    ),
    "redirect": (
        [b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"],
        Response(302),
    ),
    "body at the limit": (
        [b"HTTP/1.1 200 OK\r\ncontent-length: 65536\r\n\r\n" + b"x" * 65_536],
        Response(200, b"x" * 65_536),
    ),
    "body in chunks of a byte": (
        [CHUNKED + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"],
        Response(200, b"x" * 20_000),
    ),
    "blank lines behind": ([OK + b"\r\n"], Response(200, b'{"ok":true}')),
}


@each("name", ANSWERS)
async def test_responses_that_keep_the_connection_open(name: str, receive: Any, client: Any) -> None:
    pieces, expected = ANSWERS[name]
    receiver = await receive(answer_with(*pieces))
    for _ in range(3):
        assert (await client.call(receiver.url)).outcome == expected
    assert (receiver.connections, len(receiver.requests)) == (1, 3)


CLOSING = {
    "connection: close": (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx", Response(200, b"x")),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", Response(200, b"x")),
    "one answer too many": (OK + OK, Response(200, b'{"ok":true}')),
    "one empty answer too many": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n" * 2, Response(200)),
    "body longer than announced": (OK + b"more", Response(200, b'{"ok":true}')),
}


@each("name", CLOSING)
async def test_responses_that_close_the_connection(name: str, receive: Any, client: Any) -> None:
    answer, expected = CLOSING[name]
    receiver = await receive(answer_with(answer))
    for _ in range(2):
        assert (await client.call(receiver.url)).outcome == expected
    assert (receiver.connections, len(receiver.requests)) == (2, 2)


async def test_a_body_that_ends_with_the_connection(receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(b"HTTP/1.1 200 OK\r\n\r\n", b"ab", b"c", close=True))
    assert (await client.call(receiver.url)).outcome == Response(200, b"abc")


@each("length", [b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b""])
async def test_head_has_no_body(length: bytes, receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n"))
    for _ in range(2):
        assert (await client.call(receiver.url, method="HEAD")).outcome == Response(200)
    assert receiver.connections == (1 if length else 2)
    assert receiver.requests[0][0].startswith("HEAD ")


async def test_head_and_post_share_a_connection(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        while request := await peer.request():
            await peer.send(OK[:-11] if request[0].startswith("HEAD") else OK)

    receiver = await receive(script)
    for method, body in (("POST", b'{"ok":true}'), ("HEAD", b""), ("POST", b'{"ok":true}'), ("HEAD", b"")):
        assert (await client.call(receiver.url, method=method)).outcome == Response(200, body)
    assert receiver.connections == 1


NONSENSE = {
    "garbage": b"\x00\x01\x02 hello\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad length": b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "bad chunk": CHUNKED + b"zz\r\n",
    "upgrade": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "endless header": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000,
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000,
    "long head at once": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 40_000 + b"\r\ncontent-length: 0\r\n\r\n",
    "endless trailer": CHUNKED + b"0\r\nx: " + b"a" * 100_000,
    "endless chunk extension": CHUNKED + b"1;" + b"a" * 100_000,
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
}


@each("name", NONSENSE)
async def test_invalid_responses_are_reported(name: str, receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(NONSENSE[name])
        await peer.closed_by_client()

    receiver = await receive(script)
    outcome = (await client.call(receiver.url)).outcome
    assert isinstance(outcome, NoResponse)
    assert (outcome.code, outcome.final) == ("BAD_RESPONSE", False)
    await receiver.closed.wait()


@each("sent", [b"", b"H", b"HTTP/1.1 20", OK[:-20], OK[:-1], CHUNKED + b"5\r\nab"])
async def test_connection_closed_during_the_response(sent: bytes, receive: Any, client: Any) -> None:
    receiver = await receive(answer_with(sent, close=True))
    exchange = await client.call(receiver.url)
    assert isinstance(exchange.outcome, NoResponse)
    assert exchange.outcome.code == "CONNECTION_CLOSED"
    assert exchange.sent_at is not None
    assert (receiver.connections, len(receiver.requests)) == (1, 1)


async def test_closed_right_after_accepting(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        return

    receiver = await receive(script)
    outcome = (await client.call(receiver.url)).outcome
    assert isinstance(outcome, NoResponse)
    assert outcome.code == "CONNECTION_CLOSED"


@each("status", [200, 500])
@each("framing", [b"content-length: 104857600", b"x: y"])
async def test_a_huge_body_is_not_read(status: int, framing: bytes, receive: Any, client: Any) -> None:
    sent_bytes = 0

    async def script(peer: Peer) -> None:
        nonlocal sent_bytes
        await peer.request()
        await peer.send(b"HTTP/1.1 %d X\r\n%b\r\n\r\n" % (status, framing))
        for _ in range(1_600):
            await peer.send(b"x" * 65_536)
            sent_bytes += 65_536

    receiver = await receive(script)
    outcome = (await client.call(receiver.url)).outcome
    assert outcome == Response(status, b"x" * CallbackLimits().response_body_bytes_max, truncated=True)
    await receiver.closed.wait()
    # What fits into the sockets' buffers is out of our hands.
    assert sent_bytes < 50_000_000


async def test_hanging_before_and_during_the_response_times_out(receive: Any, client: Any) -> None:
    for sent in (b"", b"HTTP/1.1 200 OK\r\n", OK[:-1]):

        async def script(peer: Peer, sent: bytes = sent) -> None:
            await peer.request()
            await peer.send(sent)
            await peer.closed_by_client()

        receiver = await receive(script)
        # Long enough for a busy machine to connect and send.
        exchange = await client.call(receiver.url, timeout_us=500_000)
        assert exchange.outcome == NoResponse("TIMEOUT", "no complete response within 0.5 s")
        assert exchange.duration_us >= 500_000
        assert exchange.sent_at is not None
        await receiver.closed.wait()


async def test_a_dripping_response_is_cut_at_the_deadline(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nx: ")
        while True:
            await peer.send(b"a")
            await asyncio.sleep(0.005)

    receiver = await receive(script)
    exchange = await client.call(receiver.url, timeout_us=80_000)
    assert exchange.outcome.code == "TIMEOUT"
    assert exchange.duration_us >= 80_000
    await receiver.closed.wait()


async def test_each_of_many_deadlines_is_enforced(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.closed_by_client()

    receiver = await receive(script)
    timeouts = [(n * 37 % 23 + 1) * 5_000 for n in range(60)]
    calls = [client.begin(receiver.url, timeout_us=timeout) for timeout in timeouts]
    for call, timeout in zip(calls, timeouts, strict=True):
        exchange = await call
        # On a machine that halted for a moment, the process knows that it was stalled.
        assert exchange.outcome.code in ("TIMEOUT", "PROCESS_STALLED")
        assert exchange.duration_us >= timeout


async def test_a_receiver_that_does_not_read(receive: Any, client: Any) -> None:
    async def script(peer: Peer) -> None:
        await asyncio.Event().wait()

    receiver = await receive(script)
    big = client.begin(receiver.url, payload=msgspec.Raw(b'"' + b"x" * 20_000_000 + b'"'), timeout_us=100_000)
    assert (await big).outcome.code == "TIMEOUT"


async def test_unsendable_requests_are_reported_asynchronously(client: Any) -> None:
    for changes in ({"url": "nonsense"}, {"method": "TRACE"}, {"headers": {"x": "a\r\nb: c"}}):
        exchange = await client.call(**{"url": "http://127.0.0.1:1/", **changes})
        assert exchange.outcome.code == "INVALID_REQUEST"
        assert exchange.outcome.final
        assert (exchange.sent_at, exchange.duration_us) == (None, 0)


async def test_destinations(client_with: Any) -> None:
    destination = client_with().caller.destination
    assert destination("HTTPS://Hooks.Example/a") == destination("https://hooks.example:443/b?c")
    assert destination("http://127.1:80/") == "http://127.0.0.1:80"
    assert destination("http://[::1]/") == "http://[::1]:80"
    assert destination("nonsense") == "invalid:"


@each("items, bytes_read", [(1, 8), (3, 24), (4, 30), (100, 30)])
async def test_the_response_to_a_batch_may_be_longer(
    items: int, bytes_read: int, receive: Any, client_with: Any
) -> None:
    receiver = await receive(answer_with(b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n" + b"x" * 40))
    client = client_with(limits=CallbackLimits(response_body_bytes_max=8, batch_response_bytes_max=30))
    exchange = await client.call(receiver.url, items=(an_invocation(receiver.url),) * items)
    assert exchange.outcome == Response(200, b"x" * bytes_read, truncated=True)


async def test_the_whole_response_to_a_batch_is_read(receive: Any, client: Any) -> None:
    body = b"x" * (LIMITS.response_body_bytes_max + 1)
    receiver = await receive(answer_with(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)))
    exchange = await client.call(receiver.url, items=(an_invocation(receiver.url),) * 2)
    assert exchange.outcome == Response(200, body)
