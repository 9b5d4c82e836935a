"""Both transports against a server that misbehaves, and the limits of their calls."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading

import pytest
import trustme
import urllib3
from tests.support.patience import PATIENCE_S

from tocsin_client import AsyncClient, Client, errors
from tocsin_client._core.steps import Send
from tocsin_client._transport_urllib3 import Urllib3Transport


class Misbehaving:
    """Accepts connections, reads a request, and does what it was made for."""

    def __init__(self, answer, certificate=None):
        self.answer = answer
        self.connections = self.requests = 0
        self.tls = None
        if certificate is not None:
            self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            certificate.configure_cert(self.tls)
        self.arrived, self.closed = threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve_one, args=(connection,), daemon=True).start()

    def serve_one(self, connection):
        self.connections += 1
        with connection, contextlib.suppress(OSError):
            self.answer_one(connection)

    def answer_one(self, connection):
        used = connection if self.tls is None else self.tls.wrap_socket(connection, server_side=True)
        with used as connection:
            if connection.recv(65536):
                self.requests += 1
                self.arrived.set()
                # Who closes a connection before it has read everything resets it.
                with contextlib.suppress(ConnectionError):
                    connection.sendall(self.answer)
                    while self.answer != b"" and connection.recv(65536):
                        pass
                if self.answer.startswith(b"H"):
                    self.closed.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


HALF = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"


def get_blocking(url, **options):
    with Client(url, **options) as client:
        return client.timers.get("n", "a")


def get_async(url, **options):
    async def run():
        async with AsyncClient(url, **options) as client:
            return await client.timers.get("n", "a")

    return asyncio.run(run())


@pytest.fixture(params=[get_blocking, get_async], ids=["urllib3", "aiohttp"])
def get(request):
    return request.param


def test_refused_connections_were_never_sent(get):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(errors.TransportError) as raised:
        get(url, retries=0)
    assert not raised.value.maybe_done


def test_what_is_not_trusted_gets_no_request_and_is_not_asked_again(get):
    authority = trustme.CA()
    with Misbehaving(HALF, certificate=authority.issue_cert("127.0.0.1")) as server:
        with pytest.raises(errors.TransportError, match="certificate") as raised:
            get(server.url)
        assert not raised.value.maybe_done and server.connections == 1


def test_a_failed_handshake_sends_nothing(get):
    with Misbehaving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server, pytest.raises(errors.TransportError) as raised:
        get(server.url.replace("http:", "https:"), retries=0)
    assert not raised.value.maybe_done


def test_lost_answers_may_have_been_executed(get):
    with Misbehaving(b"") as server, pytest.raises(errors.TransportError) as raised:
        get(server.url, retries=2)
    assert raised.value.maybe_done and server.requests == 3


def test_deadline_includes_the_answer(get):
    # A busy machine may take longer than that to send the request.
    for timeout in (0.2, 1, 5, 25):
        with Misbehaving(HALF) as server, pytest.raises(errors.DeadlineExceeded) as raised:
            get(server.url, timeout=timeout)
        if server.requests:
            break
    assert raised.value.maybe_done and server.requests == 1


BODY = b"x" * 16 * 1024 * 1024
POST = {"method": "POST", "target": "/", "headers": {}, "body": BODY, "connect_timeout_s": 0.2}
DONE = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Slow(Misbehaving):
    """Begins to read the request only after longer than the limit of connecting, or never; then answers."""

    def __init__(self, reads=True, **options):
        super().__init__(DONE, **options)
        self.over = threading.Event()
        self.reads = reads

    def answer_one(self, connection):
        used = connection if self.tls is None else self.tls.wrap_socket(connection, server_side=True)
        with used as connection:
            while True:
                self.over.wait(0.4 if self.reads else PATIENCE_S)
                received = 0
                while received < len(BODY):
                    read = connection.recv(1 << 20)
                    if not read:
                        return
                    received += len(read)
                connection.sendall(self.answer)

    def __exit__(self, *_):
        self.over.set()
        super().__exit__()


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("tls", [False, True])
def test_a_large_body_has_the_time_of_its_try(given, tls):
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    pool = urllib3.PoolManager(ssl_context=trusting) if given else None
    certificate = authority.issue_cert("127.0.0.1") if tls else None
    with Slow(certificate=certificate) as slow:
        transport = Urllib3Transport(trusting, pool)
        for _ in range(2):  # the second one on the same connection
            assert transport._send(Send(base=slow.url, timeout_s=PATIENCE_S, **POST)).status == 200
        assert slow.connections == 1


def test_a_body_that_is_cut_off_was_not_sent():
    with Slow(reads=False) as slow, pytest.raises(errors.TransportError) as raised:
        Urllib3Transport(None, None)._send(Send(base=slow.url, timeout_s=0.5, **POST))
    assert not raised.value.maybe_done


def test_redirects_are_not_followed(get):
    moved = b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"
    with Misbehaving(moved) as server, pytest.raises(errors.ApiError) as raised:
        get(server.url)
    assert raised.value.status == 301


def test_a_canceled_task_ends_its_request_at_once():
    async def run(server):
        async with AsyncClient(server.url) as client:
            call = asyncio.create_task(client.timers.get("n", "a"))
            assert await asyncio.to_thread(server.arrived.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(server.closed.wait, 30)

    with Misbehaving(HALF) as server:
        asyncio.run(run(server))
    assert server.requests == 1


@pytest.mark.parametrize(("option", "value"), [("timeout", 0), ("retries", -1), ("routing", "owner")])
def test_options_are_checked(option, value):
    with pytest.raises(ValueError, match=option):
        Client("http://127.0.0.1:8080", **{option: value})


def test_the_url_is_checked():
    with pytest.raises(ValueError, match="http or https"):
        Client("127.0.0.1:8080")
