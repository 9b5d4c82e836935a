"""Traces of creates, callbacks and service calls, as a collector gets them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.calls import Api
from tests.support.cluster import SOON, running, shared_by, until, view
from tests.support.http import Client
from tests.support.otlp import Collector, attributes, collector
from tests.support.scripted import Arrival, Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_RETRY = {"retryPolicy": {"initialInterval": "10ms"}}
_NEW_ID = Uuid7Source(lambda: time.time_ns() // 1_000)


def _env(spans: Collector, ratio: float) -> dict[str, str]:
    # The exporter sends what it has as often as the delay.
    return {
        "TOCSIN_TRACING_ENDPOINT": spans.url,
        "TOCSIN_TRACING_SAMPLE_RATIO": str(ratio),
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }


@asynccontextmanager
async def _traced(
    folder: Path, ratio: float, *flags: str, command: str = "serve"
) -> AsyncIterator[tuple[ServerProcess, ScriptedReceiver, Collector]]:
    async with collector() as spans, ScriptedReceiver({"busy": [Reply(503), Reply(200)]}) as receiver:
        server = ServerProcess(folder, *flags, env=_env(spans, ratio), command=command)
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


class _Calls:
    """The service calls of a new tenant. Each submission has a `traceparent`."""

    def __init__(self, server: ServerProcess) -> None:
        self.tenant = _NEW_ID()
        self._server = server

    async def submit(self, url: str, traceparent: str = f"00-{_TRACE}-{_PARENT}-01", **more: Any) -> str:
        spec = {"method": "POST", "url": url, "body": 1, **more.pop("spec", {})}
        client = Client(self._server.address, {"traceparent": traceparent})
        body = {"name": "a", "requestSpec": spec, **more}
        # The path of the event service agent kata.
        status, call = await client.post(f"/api/tenants/{self.tenant}/service-calls", body)
        client.close()
        assert status == 202, call
        return str(call["serviceCallId"])

    async def finished(self, call_id: str) -> dict[str, Any]:
        """The call, once it has succeeded or failed."""
        client = Client(self._server.address)
        while True:
            status, call = await client.get(f"/api/v1/tenants/{self.tenant}/service-calls/{call_id}")
            assert status == 200, call
            if call["status"] in ("Succeeded", "Failed"):
                client.close()
                return dict(call)
            await asyncio.sleep(0.02)

    def check(self, call: dict[str, Any], submission: Span, executions: list[Span], arrivals: list[Arrival]) -> None:
        """The spans of executions are those of the call's log, in one trace that is linked to the submission, and the
        receiver got each as its parent."""
        trace_id = sha256(f"{self.tenant}/{call['serviceCallId']}".encode()).hexdigest()[:32]
        logged = {execution["executionId"]: execution for execution in call["executions"]}
        for span in executions:
            assert span.trace_id.hex() == trace_id != submission.trace_id.hex()
            assert [(link.trace_id, link.span_id) for link in span.links] == [(submission.trace_id, submission.span_id)]
            assert span.kind == Span.SPAN_KIND_CLIENT
            assert attributes(span)["tocsin.service_call.id"] == call["serviceCallId"]
            execution = logged[str(attributes(span)["tocsin.execution.id"])]
            assert attributes(span)["http.response.status_code"] == execution["response"]["status"]
        parents = [f"00-{trace_id}-{span.span_id.hex()}-01" for span in executions]
        assert [arrival.headers["traceparent"] for arrival in arrivals] == parents


@pytest.mark.parametrize("bus", ["embedded", "nats"])
async def test_each_execution_of_a_service_call_is_linked_to_its_submission(
    bus: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    flags = ["--broker", request.getfixturevalue("nats").url] if bus == "nats" else []
    async with _traced(tmp_path, 0, *flags) as (server, receiver, spans):
        calls, key = _Calls(server), {"idempotencyKey": "k"}
        call_id = await calls.submit(receiver.url("busy"), spec=_RETRY, **key)
        call = await calls.finished(call_id)
        # The repetition is a request of its own; the call stays in the trace of the first one.
        again = f"00-{_TRACE[::-1]}-{_PARENT}-01"
        assert await calls.submit(receiver.url("busy"), again, spec=_RETRY, **key) == call_id
        found = await spans.count(4)
        submitted, repeated = _named(found, "submitServiceCall")
        assert (submitted.trace_id.hex(), submitted.parent_span_id.hex()) == (_TRACE, _PARENT)
        assert submitted.kind == Span.SPAN_KIND_SERVER
        assert (repeated.trace_id.hex(), repeated.parent_span_id.hex()) == (_TRACE[::-1], _PARENT)
        executions = _named(found, "execute")
        calls.check(call, submitted, executions, receiver.calls["busy"])
        assert [attributes(span)["tocsin.outcome"] for span in executions] == ["failed", "succeeded"]


async def test_the_submitters_decision_is_kept_and_the_calls_own_traceparent_is_sent(tmp_path: Path) -> None:
    unsampled, own = f"00-{_TRACE}-{_PARENT}-00", f"00-{_TRACE[::-1]}-{_PARENT}-01"
    async with _traced(tmp_path, 0) as (server, receiver, spans):
        calls = _Calls(server)
        await calls.finished(await calls.submit(receiver.url("unsampled"), unsampled))
        await calls.finished(await calls.submit(receiver.url("invalid"), f"ff-{_TRACE}-{_PARENT}-01"))
        await calls.finished(await calls.submit(receiver.url("own"), spec={"headers": {"Traceparent": own}}))
        assert [span.name for span in await spans.count(2)] == ["submitServiceCall", "execute"]
        arrived = {name: arrivals[0].headers.get("traceparent") for name, arrivals in receiver.calls.items()}
        assert arrived == {"unsampled": unsampled, "invalid": None, "own": own}


@pytest.mark.parametrize("timer", ["polling", "engine"])
async def test_a_call_that_is_due_after_a_restart_stays_linked_to_its_submission(timer: str, tmp_path: Path) -> None:
    async with _traced(tmp_path / "dev", 0, "--agent-timer", timer, command="dev") as (server, receiver, spans):
        calls = _Calls(server)
        spec = {"retryPolicy": {"initialInterval": "1h"}}
        call_id = await calls.submit(receiver.url("busy"), delay="30d", spec=spec)
        (submitted,) = await spans.count(1)
        await server.kill()
        await server.start()
        assert receiver.calls["busy"] == []
        status, moved = await Api(server)("dev/clock/advance", by="31d")
        assert status == 200, moved
        call = await calls.finished(call_id)
        assert call["status"] == "Succeeded"
        calls.check(call, submitted, _named(await spans.count(3), "execute"), receiver.calls["busy"])


async def test_another_nodes_execution_joins_the_trace(tmp_path: Path, postgresql_url: str) -> None:
    script = {"charge": [Reply(-1), Reply(200)]}
    async with collector() as spans, ScriptedReceiver(script) as receiver:
        nodes = {
            name: ServerProcess(
                tmp_path / name,
                "--store",
                postgresql_url,
                env={
                    **SOON,
                    **_env(spans, 0),
                    "TOCSIN_NODE_NAME": name,
                    "TOCSIN_AGENT_SQL_LOCK_WAIT": "100ms",
                    # However long a busy machine takes to start another agent.
                    "TOCSIN_CLUSTER_AGENT_WAIT": "1m",
                },
            )
            for name in ("one", "two")
        }
        async with running(*nodes.values()):
            await shared_by(list(nodes.values()), set(nodes))
            leading: list[str] = []

            async def one_leads() -> bool:
                leading[:] = [node["node"] for node in (await view(nodes["one"]))["nodes"] if node.get("agent")]
                return len(leading) == 1

            await until(one_leads)
            leader = nodes.pop(leading[0])
            (other,) = nodes.values()
            # The other node relays the submission to the one that runs the agent, where the first execution gets no answer.
            calls = _Calls(other)
            call_id = await calls.submit(receiver.url("charge"))
            await receiver.count("charge", 1)
            (submitted,) = await spans.count(1)
            await leader.kill()
            call = await calls.finished(call_id)
            assert [execution.get("errorMessage", "")[:11] for execution in call["executions"]] == ["interrupted", ""]
            executed = _named(await spans.count(2), "execute")
            interrupted, repeated = receiver.calls["charge"]
            calls.check(call, submitted, executed, [repeated])
            # The span of the first execution ended with its node.
            assert interrupted.headers["traceparent"][:36] == repeated.headers["traceparent"][:36]
            assert interrupted.headers["traceparent"] != repeated.headers["traceparent"]
