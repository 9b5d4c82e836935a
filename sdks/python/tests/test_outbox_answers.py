"""What a drain makes of answers that are not Tocsin's, of a server that is none."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tocsin_client import Client
from tocsin_client._core.outbox import Outcome, Row, Taken, requests
from tocsin_client.outbox import DbApi, Drain, outbox

HOOK = "http://127.0.0.1:1/hooks"


@contextlib.contextmanager
def answering(answer, bodies=None):
    """A server whose answers are those of `answer`, which gets the number of timers: a status and a body. Yields its URL
    and these numbers; `bodies` gets what is sent."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = self.rfile.read(int(self.headers["content-length"]))
            asked.append(len(json.loads(sent)["timers"]))
            if bodies is not None:
                bodies.append(sent)
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


def drained(path, url, *ids, **options):
    """What a round makes of a row for each of these timers, and the reasons that it stored."""
    with contextlib.closing(sqlite3.connect(path)) as connection, Client(url, **options) as client:
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


def test_rows_are_sent_as_they_are(tmp_path):
    """Also what a newer program knows, and numbers that a float would change."""
    path, sent = tmp_path / "app.db", []
    payload = '{"price":0.12345678901234567890123,"huge":1e400,"minus":-0,"held":[1.5,10.0,9007199254740993,"1e400"]}'
    member = '"namespace":"n","id":"t","callbackUrl":"http://x/","executeAt":"2027-01-31T12:00:00Z","newField":{"a":1}'

    def answer(_):
        return 200, b'{"results": [{"error": {"error": "INVALID_INPUT", "message": "", "status": 400, "errors": []}}]}'

    with answering(answer, sent) as (url, _), contextlib.closing(sqlite3.connect(path)) as connection:
        drained(path, url)
        row = ("0197a3c0-0000-7000-8000-000000000001", "n", "t", f'{{{member},"payload":{payload}}}', 1, 0)
        connection.execute(
            "INSERT INTO tocsin_outbox (id, namespace, timer_id, request, created_at, due_at) VALUES (?, ?, ?, ?, ?, ?)",
            row,
        )
        connection.commit()
        made, reasons = drained(path, url)
    assert f'{{{member},"payload":{payload},"idempotencyKey":"{row[0]}"}}' in sent[0].decode()
    assert made.dead == 1 and reasons[0].startswith("INVALID_INPUT (400)"), "the server decides"


@pytest.mark.parametrize("request_text", ["{", "[]", '{"payload": NaN}', '{"payload": ' + "[" * 200_000])
def test_a_row_that_is_no_json_is_dead(request_text):
    outcome = Outcome()
    assert requests(Taken([Row("r", request_text, 1)]), 2, outcome) == []
    assert list(outcome.dead) == ["r"]


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


def test_a_row_that_is_refused_for_the_moment_is_no_server_that_is_away(tmp_path):
    """Else the rows of all namespaces would wait for the quota of one."""
    over = {"results": [{"error": {"error": "QUOTA_EXCEEDED", "message": "", "status": 429, "errors": []}}]}
    with answering(lambda _: (200, json.dumps(over).encode())) as (url, _):
        made, _ = drained(tmp_path / "app.db", url, "a", retries=0)
    assert (made.waiting, made.unavailable) == (1, None)


def test_what_tocsin_refuses_for_good_is_dead(tmp_path):
    refusal = b'{"error": "INVALID_INPUT", "message": "no", "errors": []}'
    with answering(lambda _: (400, refusal)) as (url, asked):
        made, reasons = drained(tmp_path / "app.db", url, "a", "b")
    assert (made.dead, asked) == (2, [2, 1, 1]) and all(reason.startswith("INVALID_INPUT") for reason in reasons)
