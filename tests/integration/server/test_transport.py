"""What is hardly HTTP: it is refused in our form, and costs neither memory nor a connection for long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.http import Client
from tests.support.raw import closed, say
from tests.support.server import ServerProcess

POST = b"POST /api/v1/timers/get HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


NOT_HTTP = (
    b"\x00\x01\x02\r\n\r\n",
    b"FOO /api/v1/timers/get HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /\xc3\xa9 HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: x\r\nname with spaces: v\r\n\r\n",
    POST + b"content-length: abc\r\n\r\n",
    POST + b"content-length: -5\r\n\r\n",
    POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
)


async def test_what_is_not_http_gets_a_problem_and_the_connection_is_closed(server: ServerProcess) -> None:
    for sent in NOT_HTTP:
        answer = await say(server.address(), sent)
        assert (answer.status, answer.problem["error"]) == (400, "MALFORMED_REQUEST"), sent
        assert answer.headers["connection"] == "close"


async def test_a_head_without_end_is_cut_off(server: ServerProcess) -> None:
    answer = await say(server.address(), b"GET /healthz HTTP/1.1\r\nhost: x\r\na: " + b"v" * 3_000_000)
    assert (answer.status, answer.problem["error"]) == (431, "HEADERS_TOO_LARGE")


async def test_slow_heads_and_silent_connections_are_closed(tmp_path: Path) -> None:
    times = {"TOCSIN_API_REQUEST_HEAD_TIMEOUT": "200ms", "TOCSIN_KEEP_ALIVE_TIMEOUT": "1s"}
    server = ServerProcess(tmp_path / "data", env=times)
    await server.start()
    slow, silent = await asyncio.gather(
        say(server.address(), b"POST /api/v1/timers/get HTTP/1.1\r\nhost:"), closed(server.address())
    )
    assert (slow.status, slow.problem["error"]) == (408, "REQUEST_TIMEOUT")
    assert silent == b""
    client = Client(server.address)
    # A body that is late has its own, longer time: the head was complete.
    assert (await client.post("/api/v1/namespaces/list", {}))[0] == 200
    client.close()
    assert await server.stop() == 0


async def test_a_head_in_pieces_is_put_together_also_behind_a_large_body(server: ServerProcess) -> None:
    body = b'{"namespace": "default", "timerId": "nobody"' + b" " * 200_000 + b"}"
    first = POST + b"content-length: %d\r\n\r\n" % len(body) + body
    second = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection(*server.address())
    writer.write(first + second[:20])
    await writer.drain()
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404")
    writer.write(second[20:])
    assert b"HTTP/1.1 200 OK" in await reader.read()
    writer.close()
