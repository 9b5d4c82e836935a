"""Sizes, methods, paths, correlation ids, errors of the service, and the mounted application."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator

import pytest
from api_server import Served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from tests.support.patience import PATIENCE_S

from tocsin.model.errors import (
    OutcomeUnknown,
    Overloaded,
    RequestExpired,
    ShardUnavailable,
    StoreCorrupted,
    StoreUnavailable,
    TocsinError,
)
from tocsin.model.ids import is_uuid7
from tocsin.web.api.request import ApiLimits

TIMER = {"namespace": "default", "id": "t1", "delay": "1h", "callbackUrl": "https://a.example/x"}
JSON = {"content-type": "application/json"}


def exchange(server: Served, request: bytes) -> bytes:
    """Sends raw bytes and reads until the server closes."""
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer


def test_body_size_is_limited_before_reading(server: Served) -> None:
    answer = server.client.post("/api/v1/timers/create", content=b" " * (256 * 1024 + 1), headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (413, "BODY_TOO_LARGE")
    # The announcement is enough; nothing of the body is sent here.
    answer_text = exchange(
        server,
        b"POST /api/v1/timers/create HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 99999999999\r\n\r\n",
    )
    assert answer_text.startswith(b"HTTP/1.1 413")


def test_body_size_is_limited_while_reading(server: Served) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 4_096

    answer = server.client.post("/api/v1/timers/create", content=parts(), headers=JSON)
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")


def test_body_may_arrive_after_its_headers(server: Served) -> None:
    body = json.dumps(TIMER).encode()
    head = (
        b"POST /api/v1/timers/create HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"connection: close\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        connection.sendall(head)
        # The server asks for the body once the application waits for it.
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100")
        connection.sendall(body[:20])
        connection.sendall(body[20:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_disconnecting_client_does_not_affect_others(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    head = (
        b"POST /api/v1/timers/create HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"expect: 100-continue\r\ncontent-length: 100\r\n\r\n"
    )
    with socket.create_connection(server.address, timeout=PATIENCE_S) as connection:
        connection.sendall(head)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100")
    assert server.post("timers/create", TIMER).status_code == 200
    assert caplog.records == []


def test_batch_may_be_larger(server: Served) -> None:
    items = [{**TIMER, "id": f"t{number}", "payload": "x" * 90_000} for number in range(20)]
    assert server.post("timers/batch/create", {"timers": items}).status_code == 200
    assert len(server.service.timers) == 20


def test_stalled_body_times_out(serve: Callable[..., Served]) -> None:
    server = serve(limits=ApiLimits(request_read_timeout_s=0.05))
    head = (
        b"POST /api/v1/timers/create HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: 50\r\n\r\n"
    )
    for sent in (head, head + b'{"namespace":'):
        answer = exchange(server, sent)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"REQUEST_TIMEOUT" in answer
        assert b"connection: close" in answer
    assert server.client.get("/healthz").status_code == 200


def test_too_many_headers_are_refused(server: Served) -> None:
    for headers in ({f"x-{number}": "" for number in range(101)}, {"x-long": "y" * 33_000}):
        answer = server.client.get("/healthz", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (431, "HEADERS_TOO_LARGE")


def test_unknown_path_and_wrong_method(server: Served) -> None:
    for path in ("/none", "/api/v1/timers", "/api/v1/timers/create/", "/nothing%20here"):
        answer = server.client.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "ROUTE_NOT_FOUND")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["instance"] == path
    answer = server.client.get("/api/v1/timers/create")
    assert (answer.status_code, answer.json()["error"]) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == "POST"
    assert server.client.put("/healthz").headers["allow"] == "GET, HEAD"
    assert server.client.options("/api/v1/timers/create").status_code == 405


def test_an_encoded_path_is_another_path(server: Served) -> None:
    """An encoded spelling of a path does not bypass a proxy's rule about it."""
    for sent in (b"GET /api/v1%2fcluster", b"GET /%6detrics", b"POST /api/v1/timers%2Fcreate"):
        answer = exchange(server, sent + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404"), sent


def test_correlation_id_is_adopted_or_generated(server: Served) -> None:
    assert (
        server.client.get("/healthz", headers={"x-correlation-id": "order-17"}).headers["x-correlation-id"]
        == "order-17"
    )
    made = {server.client.get("/healthz").headers["x-correlation-id"] for _ in range(3)}
    assert all(map(is_uuid7, made))
    assert len(made) == 3
    for bad in ("a b", "x" * 129, "<script>", ""):
        assert server.client.get("/healthz", headers={"x-correlation-id": bad}).headers["x-correlation-id"] != bad


@pytest.mark.parametrize(
    ("fault", "status", "error", "retry_after"),
    [
        (ShardUnavailable("the shard is changing hands", 2.5), 503, "SHARD_UNAVAILABLE", "3"),
        (Overloaded("too much is waiting"), 429, "OVERLOADED", "1"),
        (RequestExpired("it waited too long"), 503, "REQUEST_EXPIRED", "1"),
        (StoreUnavailable("secret-host:5432 refused"), 503, "STORE_FAILURE", "1"),
        (OutcomeUnknown("secret-host: broken pipe"), 503, "STORE_FAILURE", "1"),
        (StoreCorrupted("secret-host: bad page"), 500, "INTERNAL", None),
        (TocsinError("secret-host"), 500, "INTERNAL", None),
        (KeyError("secret-host"), 500, "INTERNAL", None),
        (RecursionError("secret-host"), 500, "INTERNAL", None),
    ],
)
def test_errors_of_the_service_become_problems(
    server: Served,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
    status: int,
    error: str,
    retry_after: str | None,
) -> None:
    server.service.fault = fault
    with caplog.at_level(logging.ERROR, logger="tocsin.api"):
        answer = server.post("timers/create", TIMER)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers.get("retry-after") == retry_after
    assert "secret" not in answer.text
    logged = [record for record in caplog.records if record.name == "tocsin.api"]
    hidden = "secret" in str(fault)
    assert len(logged) == (1 if hidden else 0)
    if hidden:
        assert logged[0].exc_info is not None
        assert answer.json()["correlationId"] == logged[0].correlation_id
        assert answer.json()["correlationId"] in answer.json()["detail"]


@pytest.fixture(scope="module")
def mounted(serve: Callable[..., Served]) -> Served:
    async def page(request: Request) -> JSONResponse:
        return JSONResponse({"call": request.path_params["call"]})

    async def broken(request: Request) -> JSONResponse:
        raise ValueError("secret")

    async def teapot(request: Request) -> PlainTextResponse:
        return PlainTextResponse("short and stout", 418)

    return serve(extra=Starlette(routes=[Route("/ui/{call}", page), Route("/broken", broken), Route("/tea", teapot)]))


def test_other_paths_go_to_the_mounted_application(mounted: Served) -> None:
    answer = mounted.client.get("/ui/17", headers={"x-correlation-id": "c-1"})
    assert (answer.status_code, answer.json()) == (200, {"call": "17"})
    assert answer.headers["x-correlation-id"] == "c-1"
    assert mounted.client.get("/tea").text == "short and stout"
    assert mounted.client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/nowhere", 404, "ROUTE_NOT_FOUND"),
        ("POST", "/ui/17", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/broken", 500, "INTERNAL"),
    ],
)
def test_errors_of_the_mounted_application_become_problems(
    mounted: Served, method: str, path: str, status: int, error: str
) -> None:
    answer = mounted.client.request(method, path)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    if status == 405:
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
