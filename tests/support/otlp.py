"""A collector for OTLP over HTTP on a free port, which keeps the spans that it gets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.patience import PATIENCE_S


class Collector:
    """The spans in the order of their arrival."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.url = ""
        self._arrived = asyncio.Condition()

    async def count(self, number: int) -> list[Span]:
        """The spans, once there are this many."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.spans) >= number)
        return self.spans

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of an exporter."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = await reader.readexactly(int(headers["content-length"]))
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                assert head.startswith("post /v1/traces ")
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        self.spans += scope.spans
                async with self._arrived:
                    self._arrived.notify_all()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """A collector that listens."""
    made = Collector()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


def attributes(span: Span) -> dict[str, str | int | float]:
    """A span's attributes as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
