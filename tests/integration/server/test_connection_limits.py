"""Invalid and slow clients: they get a problem response, and occupy neither memory nor a connection for long."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.support.calls import Api, Inbox
from tests.support.cluster import until
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.raw import closed, exchange
from tests.support.server import ServerProcess
from tocsin.model.errors import ConfigError
from tocsin.server.sockets import connections_max

POST = b"POST /api/v1/timers/get HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


NOT_HTTP = (
    b"\x00\x01\x02\r\n\r\n",
    b"FOO /api/v1/timers/get HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /\xc3\xa9 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nname with spaces: v\r\n\r\n",
    POST + b"content-length: abc\r\n\r\n",
    POST + b"content-length: -5\r\n\r\n",
    POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
)


async def test_invalid_http_gets_a_problem_and_the_connection_is_closed(server: ServerProcess) -> None:
    for sent in NOT_HTTP:
        answer = await exchange(server.address(), sent)
        assert (answer.status, answer.problem["error"]) == (400, "MALFORMED_REQUEST"), sent
        assert answer.headers["connection"] == "close"


async def test_slow_heads_and_silent_connections_are_closed(tmp_path: Path) -> None:
    times = {"TOCSIN_API_REQUEST_HEAD_TIMEOUT": "1s", "TOCSIN_KEEP_ALIVE_TIMEOUT": "1s"}
    server = ServerProcess(tmp_path / "data", env=times)
    await server.start()
    slow, silent = await asyncio.gather(
        exchange(server.address(), b"POST /api/v1/timers/get HTTP/1.1\r\nhost:"), closed(server.address())
    )
    assert (slow.status, slow.problem["error"]) == (408, "REQUEST_TIMEOUT")
    assert silent == b""

    async def is_answered() -> bool:
        """A busy machine may halt a client for longer than its head may take."""
        client = Client(server.address)
        try:
            return (await client.post("/api/v1/namespaces/list", {}))[0] == 200
        except (OSError, EOFError):
            return False
        finally:
            client.close()

    await until(is_answered)
    assert await server.stop() == 0


async def test_answers_announce_how_long_an_idle_connection_is_kept(tmp_path: Path) -> None:
    """On the direct path, whose heads are known the second time, and on uvicorn's."""
    server = ServerProcess(tmp_path / "data", env={"TOCSIN_KEEP_ALIVE_TIMEOUT": "59500ms"})
    await server.start()
    body = b'{"namespace": "default", "timerId": "nobody"}'
    direct = POST + b"content-length: %d\r\n\r\n" % len(body) + body
    reader, writer = await asyncio.open_connection(*server.address())
    for request in (direct, direct, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.count(b"\r\nkeep-alive: timeout=60\r\n") == 1, head
        assert b"connection:" not in head
        length = next(line for line in head.splitlines() if line.startswith(b"content-length: "))
        await reader.readexactly(int(length.split()[1]))
    writer.close()
    last = await exchange(server.address(), POST + b"connection: close\r\n" + direct.removeprefix(POST))
    assert (last.status, last.headers["connection"]) == (404, "close")
    assert await server.stop() == 0


async def test_connections_beyond_the_limit_close_waiting_ones_and_are_counted(tmp_path: Path) -> None:
    """Clients that keep connections open after a response do not lock out others, and callbacks continue."""
    server, inbox = ServerProcess(tmp_path / "data", env={"TOCSIN_API_CONNECTIONS_MAX": "20"}), Inbox()
    await server.start()
    async with contextlib.AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(Receiver(inbox))
        first = None
        for _ in range(60):
            reader, writer = await asyncio.open_connection(*server.address())
            stack.callback(writer.close)
            first = first or reader
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n\r\n")
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        assert first is not None
        async with asyncio.timeout(PATIENCE_S):
            await first.read()
        await Api(server).create("t", receiver.url)
        await inbox.count(1)
        metrics = await exchange(server.address(), b"GET /metrics HTTP/1.1\r\nhost: [::1]\r\nconnection: close\r\n\r\n")
    seen = dict(line.rsplit(b" ", 1) for line in metrics.body.splitlines() if line.startswith(b"tocsin_client"))
    assert float(seen[b"tocsin_client_connections"]) <= 20
    assert float(seen[b'tocsin_clients_refused_total{reason="too many connections"}']) > 40
    assert "client refused" in server.log()
    assert await server.stop() == 0


@pytest.mark.parametrize(
    ("descriptors", "wanted", "expected"),
    [
        (256, None, 128),
        (1_024, None, 512),
        (20_000, None, 10_000),
        (5_000, None, 2_900),
        (-1, None, 10_000),
        (256, 100, 100),
    ],
)
def test_client_connections_leave_descriptors_for_callbacks(
    descriptors: int, wanted: int | None, expected: int
) -> None:
    assert connections_max(wanted, 2_000, descriptors) == expected


def test_a_connection_limit_above_the_descriptor_limit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"api.connections_max: 200 .*ulimit -n.* 156 or less"):
        connections_max(200, 2_000, 256)
