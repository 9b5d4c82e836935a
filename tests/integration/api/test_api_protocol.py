"""The direct path of a create behaves like any other HTTP/1.1 request."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from api_server import Keys, Served, make_api, serving
from fake_timers import FakeTimerService
from tests.support.patience import PATIENCE_S

from tocsin.model.errors import Overloaded, TocsinError

LIMIT = 256 * 1024


def create(timer_id: str, extra: bytes = b"", version: bytes = b"1.1", target: bytes = b"") -> bytes:
    body = json.dumps({"namespace": "default", "id": timer_id, "delay": "1h", "callbackUrl": "https://a.example/x"})
    return (
        b"POST /api/v1/timers/create%b HTTP/%b\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n%b\r\n%b" % (target, version, len(body), extra, body.encode())
    )


def answers(text: bytes) -> list[tuple[int, str]]:
    """Status and timer id (or error) of each response in a stream."""
    found = []
    while text:
        head, _, rest = text.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:])
        size = int(headers["content-length"])
        body = json.loads(rest[:size])
        found.append((int(lines[0].split()[1]), body.get("id") or body.get("error") or body["status"]))
        text = rest[size:]
    return found


@pytest.fixture
def connection(server: Served) -> Iterator[socket.socket]:
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        yield connection


def to_the_end(connection: socket.socket) -> bytes:
    text = b""
    while part := connection.recv(65_536):
        text += part
    return text


CLOSE = b"connection: close\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def test_pipelined_responses_keep_their_order(connection: socket.socket) -> None:
    connection.sendall(create("a") + HEALTH + create("b") + create("c") + HEALTH + create("d", CLOSE))
    expected = [(200, "a"), (200, "ok"), (200, "b"), (200, "c"), (200, "ok"), (200, "d")]
    assert answers(to_the_end(connection)) == expected


def test_a_pipelined_request_is_answered_after_a_waiting_one(server: Served, connection: socket.socket) -> None:
    server.service.holding = True
    connection.sendall(create("a"))
    assert server.service.blocked.wait(30)
    connection.sendall(HEALTH + create("b", CLOSE))
    # The other connection's answer shows that the server has had its turn at what was sent before.
    assert server.client.get("/healthz").status_code == 200
    server.service.release()
    assert answers(to_the_end(connection)) == [(200, "a"), (200, "ok"), (200, "b")]


@pytest.mark.parametrize("cut", [1, 30, 100, 140, -1])
def test_a_request_in_two_parts(server: Served, connection: socket.socket, cut: int) -> None:
    text = create("a")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(text[:cut])
    # Makes it likely that the parts arrive apart.
    assert server.client.get("/healthz").status_code == 200
    connection.sendall(text[cut:] + create("b", CLOSE))
    assert answers(to_the_end(connection)) == [(200, "a"), (200, "b")]


@pytest.mark.parametrize(
    "request_bytes",
    [
        create("a", CLOSE),
        create("a", version=b"1.0"),
        create("a", CLOSE, target=b"?"),
        create("a", CLOSE + b"expect: something\r\n"),
    ],
)
def test_direct_path_and_uvicorn_give_the_same_responses(connection: socket.socket, request_bytes: bytes) -> None:
    connection.sendall(request_bytes)
    assert answers(to_the_end(connection)) == [(200, "a")]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nHost: evil", 400),
        (b"GET http://evil/healthz HTTP/1.1\r\nhost: x", 400),
        (b"GET http://u@x/healthz HTTP/1.1\r\nhost: x", 400),
        (b"GET http://X/healthz HTTP/1.1\r\nhost: x", 200),
    ],
)
def test_a_request_names_one_host(connection: socket.socket, head: bytes, status: int) -> None:
    connection.sendall(head + b"\r\nconnection: close\r\n\r\n")
    assert to_the_end(connection).startswith(b"HTTP/1.1 %d " % status)


def test_query_parameters_are_checked_on_the_direct_path(connection: socket.socket) -> None:
    connection.sendall(create("a") + create("b", target=b"?x=1") + create("c", CLOSE))
    assert answers(to_the_end(connection)) == [(200, "a"), (400, "INVALID_INPUT"), (200, "c")]


def test_a_refused_request_leaves_the_connection_usable(connection: socket.socket) -> None:
    bad = create("a").replace(b'"delay"', b'"delax"')
    foreign = create("b").replace(b"application/json", b"text/plain;     ")
    assert len(bad) == len(foreign) == len(create("a"))
    connection.sendall(bad)
    first = connection.recv(65_536)
    connection.sendall(foreign)
    second = connection.recv(65_536)
    connection.sendall(create("c", CLOSE))
    assert answers(first) == [(400, "INVALID_INPUT")]
    assert answers(second) == [(415, "UNSUPPORTED_MEDIA_TYPE")]
    assert answers(to_the_end(connection)) == [(200, "c")]


def test_invalid_input_after_a_waiting_request_is_refused_after_its_response(
    server: Served, connection: socket.socket
) -> None:
    server.service.holding = True
    connection.sendall(create("a"))
    assert server.service.blocked.wait(30)
    connection.sendall(b"\x00\x01 nonsense\r\n\r\n")
    assert server.client.get("/healthz").status_code == 200
    server.service.release()
    assert answers(to_the_end(connection)) == [(200, "a"), (400, "MALFORMED_REQUEST")]


@pytest.mark.parametrize("error", [None, Overloaded("full"), TocsinError("an unforeseen one")])
def test_a_client_may_disconnect_before_the_response(
    server: Served, caplog: pytest.LogCaptureFixture, error: TocsinError | None
) -> None:
    server.service.holding = True
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        connection.sendall(create("a"))
        assert server.service.blocked.wait(30)
    assert server.client.get("/healthz").status_code == 200
    server.service.release(error)
    assert server.client.get("/healthz").status_code == 200
    assert [record.getMessage() for record in caplog.records] == ["request failed"] * (type(error) is TocsinError)


def test_an_exception_of_a_handler_that_has_answered_is_reported_and_sends_nothing(
    server: Served, connection: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    server.service.defect = RuntimeError("after the answer")
    connection.sendall(create("a"))
    assert answers(connection.recv(65_536)) == [(200, "a")]
    server.service.defect = None
    connection.sendall(create("b", CLOSE))
    assert answers(to_the_end(connection)) == [(200, "b")]
    (report,) = caplog.records
    assert report.exc_info is not None
    assert str(report.exc_info[1]) == "after the answer"


def test_a_stopping_server_answers_pending_requests_and_closes() -> None:
    service = FakeTimerService()
    service.holding = True
    serve = ExitStack()
    host, port = serve.enter_context(serving(make_api(service, Keys()))).removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(create("a"))
        assert service.blocked.wait(30)
        ending = threading.Thread(target=serve.close)
        ending.start()
        with pytest.raises(ConnectionError):
            # Once the server accepts no connections, it has asked the existing ones to close.
            while True:
                socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
        service.release()
        answer = to_the_end(connection)
    ending.join()
    assert answers(answer) == [(200, "a")]
    assert CLOSE in answer
