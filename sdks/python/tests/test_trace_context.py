"""OpenTelemetry's own propagator as the hook, as docs/sdks/python.md has it."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import TracerProvider

from tocsin_client import AsyncClient, Client

TRACER = TracerProvider().get_tracer(__name__)


class Restarting:
    """Refuses the first request as a server that begins, and has no namespaces."""

    def __init__(self):
        self.traceparents = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler):
                self.traceparents.append(handler.headers.get("traceparent"))
                handler.rfile.read(int(handler.headers["content-length"]))
                first = len(self.traceparents) == 1
                body = b'{"error": "NOT_READY", "message": "m"}' if first else b'{"namespaces": []}'
                handler.send_response(503 if first else 200)
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(self, *_):
                pass

        self.listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.listener.server_port}"

    def __enter__(self):
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown()
        self.listener.server_close()


def list_blocking(url):
    with Client(url, on_request=inject) as client:
        client.namespaces.list()


def list_async(url):
    async def run():
        async with AsyncClient(url, on_request=inject) as client:
            await client.namespaces.list()

    asyncio.run(run())


@pytest.mark.parametrize("ask", [list_blocking, list_async], ids=["urllib3", "aiohttp"])
def test_all_tries_carry_the_context_of_the_call(ask):
    with Restarting() as server, TRACER.start_as_current_span("order") as span:
        ask(server.url)
    context = span.get_span_context()
    sent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    assert server.traceparents == [sent, sent]
