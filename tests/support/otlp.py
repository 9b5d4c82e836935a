"""A collector for OTLP over HTTP on a free port, which keeps the spans and logs that it gets."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.patience import PATIENCE_S


class Collector:
    """The spans and logs in the order of their arrival. While it is `refusing`, it fails with 500 and keeps nothing; to
    bodies of more than `longest` bytes it answers 413. It counts both. Logs that come again, because an answer was late, are
    there once."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.logs: list[LogRecord] = []
        self.refusing = False
        self.longest = 1 << 30
        self.refused = 0
        self.url = ""
        self._seen: set[bytes] = set()
        self._arrived = asyncio.Condition()

    async def count(self, number: int) -> list[Span]:
        """The spans, once there are this many."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.spans) >= number)
        return self.spans

    async def count_logs(self, number: int) -> list[LogRecord]:
        """The logs, once there are this many."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.logs) >= number)
        return self.logs

    async def refusals(self, number: int) -> None:
        """Returns once it has refused this many requests."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: self.refused >= number)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of an exporter."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = await reader.readexactly(int(headers["content-length"]))
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                status = self._take(head.split(" ")[1], body)
                async with self._arrived:
                    self._arrived.notify_all()
                writer.write(
                    b"HTTP/1.1 %b\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n" % status
                )
        except asyncio.IncompleteReadError:
            writer.close()

    def _take(self, path: str, body: bytes) -> bytes:
        """Keeps what the body has, or not, and returns the status."""
        if self.refusing or len(body) > self.longest:
            self.refused += 1
            return b"500 Internal Server Error" if self.refusing else b"413 Content Too Large"
        if path == "/v1/logs":
            for resource_logs in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope_logs in resource_logs.scope_logs:
                    self.logs += filter(self._is_new, scope_logs.log_records)
        else:
            assert path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        return b"200 OK"

    def _is_new(self, log: LogRecord) -> bool:
        same = LogRecord()
        same.CopyFrom(log)
        # Another one each time that the log is sent.
        same.ClearField("observed_time_unix_nano")
        known = same.SerializeToString(deterministic=True)
        new = known not in self._seen
        self._seen.add(known)
        return new


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """A collector that listens."""
    made = Collector()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


def attributes(of: Span | LogRecord) -> dict[str, Any]:
    """The attributes as plain values."""
    return {each.key: _plain(each.value) for each in of.attributes}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return [_plain(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
