"""Traces of creates and callbacks, as a collector gets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.calls import Api
from tests.support.otlp import Collector, attributes, collector
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_RETRY = {"retryPolicy": {"initialInterval": "10ms"}}


@asynccontextmanager
async def _traced(folder: Path, ratio: float) -> AsyncIterator[tuple[ServerProcess, ScriptedReceiver, Collector]]:
    async with collector() as spans, ScriptedReceiver({"busy": [Reply(503), Reply(200)]}) as receiver:
        # The exporter sends what it has as often as this.
        env = {
            "TOCSIN_TRACING_ENDPOINT": spans.url,
            "TOCSIN_TRACING_SAMPLE_RATIO": str(ratio),
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        server = ServerProcess(folder, env=env)
        await server.start()
        try:
            yield server, receiver, spans
        finally:
            await server.stop()


def _named(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]


async def test_a_firing_is_a_trace_linked_to_its_create_and_the_receivers_parent(tmp_path: Path):
    async with _traced(tmp_path, 0) as (server, receiver, spans):
        api = Api(server, {"traceparent": f"00-{_TRACE}-{_PARENT}-01"})
        await api.create("order", receiver.url("busy"), **_RETRY)
        first, second = await receiver.count("busy", 2)
        (create,) = _named(await spans.count(3), "createTimer")
        assert (create.trace_id.hex(), create.parent_span_id.hex()) == (_TRACE, _PARENT)
        assert create.kind == Span.SPAN_KIND_SERVER
        fires = _named(spans.spans, "fire")
        for call, span in zip((first, second), fires, strict=True):
            trace_id = sha256(call.headers["webhook-id"].encode()).hexdigest()[:32]
            assert span.trace_id.hex() == trace_id != _TRACE
            assert call.headers["traceparent"] == f"00-{trace_id}-{span.span_id.hex()}-01"
            assert [(link.trace_id, link.span_id) for link in span.links] == [(create.trace_id, create.span_id)]
            assert span.kind == Span.SPAN_KIND_CLIENT
            assert attributes(span)["tocsin.timer.id"] == "order"
            place = f"http://{attributes(span)['server.address']}:{attributes(span)['server.port']}/"
            assert receiver.url("busy").startswith(place)
        outcomes = [
            (attributes(span)["tocsin.outcome"], attributes(span)["http.response.status_code"]) for span in fires
        ]
        assert outcomes == [("retried", 503), ("done", 200)]
        assert [span.status.code for span in fires] == [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET]


async def test_the_callers_decision_is_kept(tmp_path: Path):
    async with _traced(tmp_path, 1) as (server, receiver, spans):
        header = f"00-{_TRACE}-{_PARENT}-00"
        await Api(server, {"traceparent": header}).create("unsampled", receiver.url("unsampled"))
        (call,) = await receiver.count("unsampled", 1)
        assert call.headers["traceparent"] == header
        timers = [
            {"namespace": "default", "id": f"b{number}", "delay": "0s", "callbackUrl": receiver.url("batch")}
            for number in range(2)
        ]
        assert (await Api(server)("timers/batch/create", timers=timers))[0] == 200
        await receiver.count("batch", 2)
        status, refused = await Api(server)("timers/create", namespace="default", callbackUrl="nonsense", delay="0s")
        assert status == 400, refused
        found = await spans.count(4)
        (batch,) = _named(found, "batchCreateTimers")
        assert batch.parent_span_id == b""
        assert {link.span_id for span in _named(found, "fire") for link in span.links} == {batch.span_id}
        (create,) = _named(found, "createTimer")
        assert attributes(create)["error.type"] == "INVALID_INPUT"
        assert create.status.code == Status.STATUS_CODE_UNSET


async def test_without_a_collector_everything_goes_on(tmp_path: Path):
    env = {"TOCSIN_TRACING_ENDPOINT": "http://127.0.0.1:9", "TOCSIN_TRACING_SAMPLE_RATIO": "1"}
    server = ServerProcess(tmp_path, env=env)
    async with ScriptedReceiver({}) as receiver:
        await server.start()
        await Api(server).create("order", receiver.url("ok"))
        await receiver.count("ok", 1)
        assert await server.stop() == 0
