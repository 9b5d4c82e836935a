"""No single input blocks the event loop: each step is measured, in CPU time, while a real node handles hostile input."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import json
import re
import socketserver
import time
from asyncio import events
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any
from urllib.parse import quote, unquote, urlencode

import pytest

from tests.support.cpu import BLOCKED_S_MAX, machine_factor
from tests.support.patience import PATIENCE_S
from tocsin.server.node import Server
from tocsin.server.running import reduce_collections
from tocsin.settings import load_settings

TRIES = 3


class Watch:
    """The longest step of the event loop since `longest_s` was set to zero."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.original = events.Handle._run

    def run(self, handle: events.Handle) -> None:
        begun = thread_time()
        self.original(handle)
        self.longest_s = max(self.longest_s, thread_time() - begun)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watching = Watch()
    monkeypatch.setattr(events.Handle, "_run", lambda handle: watching.run(handle))
    yield watching


def timer(number: int, **fields: Any) -> dict[str, Any]:
    return {"namespace": "default", "id": f"t{number}", "delay": "1h", "callbackUrl": "http://127.0.0.1:9/", **fields}


def batch(count: int, **fields: Any) -> bytes:
    return json.dumps({"timers": [timer(number, **fields) for number in range(count)]}, ensure_ascii=False).encode()


#: As large as their limits let them be: a batch has 1,000 timers and 32 MB.
INPUTS = {
    "plain": lambda: batch(1_000),
    "characters of four bytes": lambda: batch(1_000, payload="😀" * 7_900),
    "many arrays": lambda: batch(1_000, payload=[[]] * 7_800),
    "long payloads": lambda: batch(315, payload=[[]] * 25_000),
    "bad headers": lambda: batch(1_000, headers={f"h {number}": "\n" for number in range(32)}),
    "withheld headers": lambda: batch(1_000, headers={f"h{number}": "[redacted]" for number in range(32)}),
    "too many": lambda: b'{"timers":[' + b",".join([b"{}"] * 4_000_000) + b"]}",
    "no end": lambda: batch(1_000, payload=[[]] * 7_800)[:-1],
    "one item": lambda: b'{"timers":[{"id":[' + b"[]," * 10_000_000 + b"]}]}",
}


TENANT = "01985a3e-0000-7000-8000-000000000001"
DEEP = "[" * 99 + "]" * 99
#: Payloads of 100 KB.
PAYLOADS = {
    "arrays": json.dumps([[]] * 33_000, separators=(",", ":")),
    "levels": f"[{','.join([DEEP] * 500)}]",
    "escaped": json.dumps("<&'>" * 25_000),
}
#: Timers of each payload: of all together a page of a list takes a part.
LARGE = 60
#: Of the largest rows that there can be.
TAGS = [f"{number:02}" + "é" * 62 for number in range(16)]
LONG_URL = "http://127.0.0.1:9/" + "a" * 2_000
FORM = {
    "namespace": "default",
    "id": "",
    "when": "in",
    "delay": "1h",
    "url": LONG_URL,
    "method": "POST",
    "timeout": "10",
}
FORMS = {
    "header fields": b"header_name=%22&header_value=%22&" * 9_000,
    "escapes": b"payload=" + b"%5B" * 170_000,
    "numbers": b"payload=[" + b"1," * 250_000 + b"1]",
    "long URL": b"url=http://a/?" + b"token=a%26" * 50_000,
    "tags": b"tags=" + b"a," * 250_000,
}
MANY_TAGS = "&".join(f"tag={number}" for number in range(5_000))


class Browser:
    """Requests of a browser to the pages, and of a program to the API."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._cookie = ""
        self._csrf = ""

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        known = {"accept": "text/html", "cookie": self._cookie, **headers}
        connection = http.client.HTTPConnection(self._url.removeprefix("http://"), timeout=PATIENCE_S)
        try:
            connection.request(method, target, body, known)
            answer = connection.getresponse()
            self._cookie = self._cookie or (answer.getheader("set-cookie") or "").partition(";")[0]
            return answer.status, answer.read()
        finally:
            connection.close()

    def open(self) -> None:
        found = re.search(rb'name="csrf" (?:content|value)="([0-9a-f]+)"', self.send("GET", "/timers")[1])
        assert found is not None
        self._csrf = found[1].decode()

    def api(self, target: str, body: bytes) -> tuple[int, bytes]:
        return self.send("POST", target, body, **{"content-type": "application/json"})

    def form(self, target: str, fields: dict[str, Any], raw: bytes = b"") -> tuple[int, bytes]:
        body = urlencode({"csrf": self._csrf, **fields}, doseq=True).encode() + b"&" + raw
        headers = {"content-type": "application/x-www-form-urlencoded", "origin": self._url}
        return self.send("POST", target, body, **headers)


def fill(browser: Browser) -> dict[str, str]:
    """Creates timers and calls of maximum size; returns the ids of the calls with bodies."""
    browser.open()
    rows = [timer(number, id=f"{number:04}" + "é" * 250, tags=TAGS, callbackUrl=LONG_URL) for number in range(500)]
    assert browser.api("/api/v1/timers/batch/create", json.dumps({"timers": rows}).encode())[0] == 200
    assert browser.api("/api/v1/namespaces/create", b'{"name":"large"}')[0] == 200
    calls = {}
    path = f"/api/v1/tenants/{TENANT}/service-calls"
    for name, payload in PAYLOADS.items():
        for first in range(0, LARGE, 20):
            some = range(first, first + 20)
            large = [timer(number, namespace="large", id=f"{name}-{number}", payload=0) for number in some]
            body = json.dumps({"timers": large}).replace('"payload": 0', f'"payload": {payload}').encode()
            assert browser.api("/api/v1/timers/batch/create", body)[0] == 200
        spec = {"method": "POST", "url": LONG_URL, "body": json.loads(payload)}
        wanted = {"name": "n" * 200, "requestSpec": spec, "dueAt": "2099-01-01T00:00:00Z", "tags": TAGS}
        status, made = browser.api(path, json.dumps(wanted, separators=(",", ":")).encode())
        assert status == 202
        calls[name] = json.loads(made)["serviceCallId"]
    del spec["body"]
    for _ in range(150):
        assert browser.api(path, json.dumps(wanted).encode())[0] == 202
    return calls


def requests(browser: Browser, calls: dict[str, str]) -> Iterator[tuple[str, int, Callable[[], tuple[int, bytes]]]]:
    """Name, expected status, and what sends it."""
    pages = [
        "/timers?view=all&rows=500",
        "/ui/more/timers?view=all&rows=500",
        f"/calls?tenant={TENANT}&rows=500",
        "/timers/export.csv?namespace=large&view=all",
        "/timers/export.json?namespace=large&view=all",
        "/timers/edit?namespace=large&id=levels-0",
        *(f"/timers/large/{name}-0" for name in PAYLOADS),
        *(f"/calls/{TENANT}/{call_id}" for call_id in calls.values()),
    ]
    for target in pages:
        yield target, 200, partial(browser.send, "GET", target)
    bad = [
        f"/timers?view=all&{MANY_TAGS}",
        f"/calls?tenant={TENANT}&{MANY_TAGS}",
        "/timers?view=all&tag=" + "a+" * 29_000,
        "/timers?q=" + quote("\u202e") * 6_000,
    ]
    for target in bad:
        yield target[:60], 400, partial(browser.send, "GET", target)
    yield from lists(browser)
    for name, payload in PAYLOADS.items():
        yield f"new, {name}", 400, partial(browser.form, "/timers/new", {**FORM, "payload": payload})
        yield f"equivalent, {name}", 200, partial(browser.form, "/ui/timers/equivalent", {**FORM, "payload": payload})
    for name, raw in FORMS.items():
        yield f"new, {name}", 400, partial(browser.form, "/timers/new", {}, raw)
    for name in ("header fields", "long URL"):
        yield f"new call, {name}", 400, partial(browser.form, "/calls/new", {"tenant": TENANT}, FORMS[name])


def lists(browser: Browser) -> Iterator[tuple[str, int, Callable[[], tuple[int, bytes]]]]:
    """Requests about many timers or calls at once."""
    ids = [f"large/{name}-{number}" for name in PAYLOADS for number in range(LARGE)]
    known, unknown = json.dumps([[name, "x"] for name in ids]), json.dumps([["a", "b"]] * 17_000)
    digits = "1" * 390_000
    yield "list", 200, partial(browser.api, "/api/v1/timers/list", b'{"namespace":"large","limit":1000}')
    of_large, of_tenant = {"namespace": "large"}, {"tenant": TENANT}
    for name, expected, target, fields in (
        ("rows", 200, "/ui/rows", {**of_large, "rows": known}),
        ("too many rows", 400, "/ui/rows", {**of_large, "rows": unknown}),
        ("rows that are none", 400, "/ui/rows", {**of_large, "rows": "[" * 120_000}),
        ("too many calls", 400, "/ui/calls/rows", {**of_tenant, "rows": unknown}),
        ("calls that are none", 400, "/ui/calls/rows", {**of_tenant, "rows": "[" * 120_000}),
        ("cancel", 200, "/timers/cancel-many", {"id": ids}),
        ("cancel nothing", 200, "/timers/cancel-many", {"id": digits}),
    ):
        yield name, expected, partial(browser.form, target, fields)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    thresholds = gc.get_threshold()
    node = Server(load_settings({"port": 0, "data_dir": tmp_path, "shards": 4}))
    await node.start()
    reduce_collections()
    try:
        yield node
    finally:
        await node.stop()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def blocked_briefly(
    watch: Watch, name: str, expected: tuple[int, ...], send: Callable[[], tuple[int, bytes]]
) -> None:
    longest_s = []
    for _ in range(TRIES):
        watch.longest_s = 0.0
        assert (await asyncio.to_thread(send))[0] in expected, name
        longest_s.append(watch.longest_s / machine_factor())
        if longest_s[-1] < BLOCKED_S_MAX:
            return
    pytest.fail(f"{name}: {min(longest_s) * 1e3:.0f} ms")


#: Whole answers of receivers, each as large as what is read of it: 128 KB of body, 32 KB of anything else.
PAYLOAD = b"[" + b"[]," * 30_000 + b"[]]"
HEAD = b"HTTP/1.1 200 OK\r\n"
BODIES = {
    "arrays": PAYLOAD,
    "levels": b"[" * 130_000,
    "members": b"{" + b'"a":1,' * 18_000 + b'"a":1}',
    "members that count": b"{" + b'"ok":1,' * 18_000 + b'"ok":true}',
    "escapes": b'{"ok":"' + rb"\u0041" * 21_000 + b'"}',
    "not UTF-8": b'{"ok":"' + b"\xff" * 130_000 + b'"}',
    "instant": b'{"nextExecuteAt":"' + b"9" * 130_000 + b'"}',
    "rescheduled": b'{"nextExecuteAt":"2099-01-01T00:00:00Z","payload":' + PAYLOAD + b"}",
    "rescheduled deeply": b'{"nextExecuteAt":"2099-01-01T00:00:00Z","payload":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "too long": b"x" * 1_000_000,
}
ANSWERS = {
    **{name: HEAD + b"content-length: %d\r\n\r\n" % len(body) + body for name, body in BODIES.items()},
    "header fields": HEAD + b"a:b\r\n" * 6_500 + b"content-length: 0\r\n\r\n",
    "a header field": HEAD + b"retry-after: " + b"1" * 31_000 + b"\r\ncontent-length: 0\r\n\r\n",
    "interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 1_300 + HEAD + b"content-length: 0\r\n\r\n",
    "chunks": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n",
    "trailers": HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a:b\r\n" * 6_000 + b"\r\n",
    "a date": b"HTTP/1.1 503 No\r\nretry-after: " + b"Mon, " * 6_000 + b"\r\ncontent-length: 0\r\n\r\n",
}


class Responding(socketserver.StreamRequestHandler):
    """Sends the response that the callback's path names, and closes the connection."""

    def handle(self) -> None:
        line = self.rfile.readline()
        length = 0
        while field := self.rfile.readline().strip():
            name, _, value = field.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self.rfile.read(length)
        with contextlib.suppress(OSError):
            self.wfile.write(ANSWERS[unquote(line.split()[1].decode()[1:])])


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_response_of_a_receiver_blocks_the_event_loop(server: Server, watch: Watch) -> None:
    browser = Browser(server.url)
    receiver = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Responding)
    receiver.daemon_threads = True
    serving = asyncio.get_running_loop().run_in_executor(None, partial(receiver.serve_forever, 0.05))
    try:
        for name in ANSWERS:
            await blocked_briefly(watch, name, (200,), partial(answered, browser, receiver.server_address[1], name))
    finally:
        receiver.shutdown()
        await serving
        receiver.server_close()


def answered(browser: Browser, port: int, name: str) -> tuple[int, bytes]:
    """Fires a timer that gets this response, and waits until it has been processed."""
    wanted = timer(0, id=name, delay="0s", callbackUrl=f"http://127.0.0.1:{port}/{quote(name)}")
    status, _ = browser.api("/api/v1/timers/create", json.dumps(wanted).encode())
    ends = time.monotonic() + PATIENCE_S
    while status == 200 and time.monotonic() < ends:
        status, body = browser.api("/api/v1/timers/get", json.dumps({"namespace": "default", "timerId": name}).encode())
        if json.loads(body)["attemptLog"]:
            return status, body
        time.sleep(0.02)
    return 0, b""


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_batch_blocks_the_event_loop(server: Server, watch: Watch) -> None:
    browser = Browser(server.url)
    for name, make in INPUTS.items():
        body = await asyncio.to_thread(make)
        assert len(body) <= 32 * 1024 * 1024, name
        await blocked_briefly(watch, name, (200, 400), partial(browser.api, "/api/v1/timers/batch/create", body))


@pytest.mark.slow
@pytest.mark.asyncio
async def test_no_page_or_form_blocks_the_event_loop(server: Server, watch: Watch) -> None:
    browser = Browser(server.url)
    calls = await asyncio.to_thread(fill, browser)
    for name, expected, send in requests(browser, calls):
        await blocked_briefly(watch, name, (expected,), send)
