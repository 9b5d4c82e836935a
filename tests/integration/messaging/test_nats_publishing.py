"""The connection on which timers are published to a NATS server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from tests.conformance.bus.base import LIMITS
from tests.support.certificates import NodeFiles
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.program import running
from tests.support.proxy import Proxy
from tocsin.messaging.nats.connection import parse_nats_address
from tocsin.messaging.nats.publishing import PublishingConnection, connect
from tocsin.model.errors import ConfigError
from tocsin.ports.bus import BrokerRefused, BusUnavailable

_HEADERS = b"NATS/1.0\r\nA: b\r\n\r\n"


class _Replies:
    """What a connection reports."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, bytes]] = []
        self.arrived = asyncio.Event()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def replied(self, number: int, payload: bytes) -> None:
        self.replies.append((number, payload))
        self.arrived.set()

    async def first(self, count: int) -> list[tuple[int, bytes]]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.replies) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return self.replies[:count]


async def _connected(url: str, replies: _Replies) -> PublishingConnection:
    return await connect(parse_nats_address(url), LIMITS, "test", replies.replied, replies.lost.set_result)


async def _published(url: str) -> None:
    """Publishes a message that no stream takes: the server itself replies."""
    replies = _Replies()
    connection = await _connected(url, replies)
    connection.publish(7, "nobody", _HEADERS, b"{}")
    assert await replies.first(1) == [(7, b"")]
    connection.close()
    assert not connection.alive and not replies.lost.done()


async def test_user_and_password_let_a_client_in_and_wrong_ones_are_refused() -> None:
    with running(NatsServer('authorization { user: "me", password: "hunter2" }')) as server:
        await _published(f"nats://me:hunter2@127.0.0.1:{server.port}")
        with pytest.raises(BrokerRefused, match=r"(?i)authorization violation"):
            await _connected(f"nats://me:wrong@127.0.0.1:{server.port}", _Replies())


async def test_a_token_lets_a_client_in() -> None:
    with running(NatsServer('authorization { token: "secret" }')) as server:
        await _published(f"nats://secret@127.0.0.1:{server.port}")


async def test_a_connection_is_secured_where_the_server_requires_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = NodeFiles(tmp_path / "tls")
    files.write(trustme.CA(), name="localhost")
    with running(NatsServer(f'tls {{ cert_file: "{files.certificate}", key_file: "{files.key}" }}')) as server:
        with pytest.raises(BrokerRefused, match=r"(?i)certificate"):
            await _connected(f"nats://localhost:{server.port}", _Replies())
        monkeypatch.setenv("SSL_CERT_FILE", str(files.ca))
        await _published(f"tls://localhost:{server.port}")


async def test_the_next_server_is_tried_where_the_first_is_away(shared_nats: NatsServer) -> None:
    await _published(f"nats://127.0.0.1:{free_port()},127.0.0.1:{shared_nats.port}".replace(",", ",nats://"))
    with pytest.raises(BusUnavailable, match="unreachable"):
        await _connected(f"nats://127.0.0.1:{free_port()}", _Replies())


async def test_an_old_server_is_refused(shared_nats: NatsServer) -> None:
    async def introduce(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version":"2.9.25"}\r\n')

    async with await asyncio.start_server(introduce, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConfigError, match=r"2\.9\.25; requires 2\.10"):
            await _connected(f"nats://127.0.0.1:{port}", _Replies())


async def test_many_messages_at_once_have_a_reply_each(shared_nats: NatsServer) -> None:
    replies = _Replies()
    connection = await _connected(shared_nats.url, replies)
    for number in range(1_000):
        connection.publish(number, "nobody", _HEADERS, b"")
    assert await replies.first(1_000) == [(number, b"") for number in range(1_000)]
    connection.close()


async def test_replies_are_read_however_they_are_cut() -> None:
    replies = _Replies()
    connection = PublishingConnection(LIMITS, replies.replied, replies.lost.set_result)
    sent = (
        b"MSG _INBOX.a.1 1 4\r\n{}\r\n\r\n+OK\r\n"
        b"HMSG _INBOX.a.2 1 16 18\r\nNATS/1.0 503\r\n\r\nab\r\nMSG _INBOX.a.3 1 0\r\n\r\n"
    )
    for at in range(len(sent)):
        connection.data_received(sent[at : at + 1])
    assert replies.replies == [(1, b"{}\r\n"), (2, b"ab"), (3, b"")]


async def test_a_connection_that_ends_is_reported_once(shared_nats: NatsServer) -> None:
    async with Proxy(("127.0.0.1", shared_nats.port)) as proxy:
        replies = _Replies()
        connection = await _connected(f"nats://127.0.0.1:{proxy.port}", replies)
        proxy.reset()
        async with asyncio.timeout(PATIENCE_S):
            await replies.lost
        assert not connection.alive
        connection.publish(1, "nobody", _HEADERS, b"")
        connection.close()


async def test_a_server_that_answers_no_pings_is_given_up(shared_nats: NatsServer) -> None:
    limits = replace(LIMITS, nats_ping_interval_us=10_000, nats_pings_outstanding_max=2)
    async with Proxy(("127.0.0.1", shared_nats.port)) as proxy:
        replies = _Replies()
        address = parse_nats_address(f"nats://127.0.0.1:{proxy.port}")
        await connect(address, limits, "test", replies.replied, replies.lost.set_result)
        proxy.silence()
        async with asyncio.timeout(PATIENCE_S):
            assert "pings" in await replies.lost


async def test_what_is_not_nats_ends_the_connection(shared_nats: NatsServer) -> None:
    replies = _Replies()
    connection = await _connected(shared_nats.url, replies)
    connection.data_received(b"HTTP/1.1 400 Bad Request\r\n")
    assert "HTTP/1.1" in replies.lost.result() and not connection.alive


async def test_a_connection_that_ends_as_it_begins_counts_as_none() -> None:
    introduced = asyncio.Event()

    async def introduce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version":"2.10.0"}\r\n')
        await reader.readuntil(b"PING\r\n")
        introduced.set()

    async with await asyncio.start_server(introduce, "127.0.0.1", 0) as server, asyncio.timeout(PATIENCE_S):
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        replies = _Replies()
        connection = PublishingConnection(LIMITS, replies.replied, replies.lost.set_result)
        opening = asyncio.create_task(connection.open(url, parse_nats_address(url), "test"))
        await introduced.wait()
        connection.data_received(b"PONG\r\n")
        connection.connection_lost(None)
        with pytest.raises(BusUnavailable, match="closed"):
            await opening
        assert not replies.lost.done()
