"""What a drain makes of answers that are not Tocsin's, of a server that is none."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tocsin_client import Client
from tocsin_client.outbox import DbApi, Drain, outbox

HOOK = "http://127.0.0.1:1/hooks"


@contextlib.contextmanager
def answering(answer):
    """A server whose answers are those of `answer`, which gets the number of timers: a status and a body. Yields its URL
    and these numbers."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(len(json.loads(self.rfile.read(int(self.headers["content-length"])))["timers"]))
            status, body = answer(asked[-1])
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def drained(path, url, *ids):
    """What a round makes of a row for each of these timers, and the reasons that it stored."""
    with contextlib.closing(sqlite3.connect(path)) as connection, Client(url) as client:
        drain = Drain(client, DbApi(lambda: sqlite3.connect(path)))
        drain.create_table()
        for timer_id in ids:
            outbox(connection).create("n", timer_id, HOOK, delay="1h")
        connection.commit()
        made = drain.once()
        return made, [reason for (reason,) in connection.execute("SELECT dead_reason FROM tocsin_outbox ORDER BY id")]


@pytest.mark.parametrize(
    "status, body",
    [
        (404, b"default backend - 404"),
        (400, b"<html>The plain HTTP request was sent to HTTPS port</html>"),
        (405, b""),
        (407, b""),
        (404, b'{"timestamp": 1, "status": 404, "error": "Not Found", "path": "/api/v1/timers/batch/create"}'),
        (404, b'{"error": "ROUTE_NOT_FOUND", "message": "there is no such operation", "errors": []}'),
    ],
)
def test_rows_wait_while_something_else_answers(tmp_path, status, body):
    with answering(lambda _: (status, body)) as (url, asked):
        made, reasons = drained(tmp_path / "app.db", url, "a", "b")
    assert (made.created, made.dead, made.waiting) == (0, 0, 2)
    assert made.unavailable.status == status
    assert reasons == [None, None]
    assert asked == [2], "each alone would get the same answer"


def test_a_row_that_a_proxy_takes_not_even_alone_is_dead(tmp_path):
    created = json.dumps(
        {"results": [{"error": {"error": "PAYLOAD_TOO_LARGE", "message": "", "status": 413, "errors": []}}]}
    )
    with answering(lambda timers: (413, b"<html>") if timers > 1 else (200, created.encode())) as (url, asked):
        made, _ = drained(tmp_path / "app.db", url, "a", "b")
    assert (asked, made.dead, made.unavailable) == ([2, 1, 1], 2, None)
    with answering(lambda _: (413, b"<html>")) as (url, _):
        made, reasons = drained(tmp_path / "other.db", url, "a")
    assert (made.dead, made.unavailable) == (1, None) and reasons == ["HTTP (413): <html>"]


def test_what_tocsin_refuses_for_good_is_dead(tmp_path):
    refusal = b'{"error": "INVALID_INPUT", "message": "no", "errors": []}'
    with answering(lambda _: (400, refusal)) as (url, asked):
        made, reasons = drained(tmp_path / "app.db", url, "a", "b")
    assert (made.dead, asked) == (2, [2, 1, 1]) and all(reason.startswith("INVALID_INPUT") for reason in reasons)
