"""The execution module with real sockets and a real service; its log is in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from standardwebhooks.webhooks import Webhook

from tests.integration.agent.execution_parts import Arrival, Bench, Service, answer, limited
from tests.support.cases import each
from tests.support.ports import free_port
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.limits import CallbackLimits
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.model.secrets import SigningSecrets, new_secret
from tocsin.ports.bus import InvalidMessage
from tocsin.service_calls.events import (
    AgentStepFailed,
    ExecutionBegun,
    ExecutionFinished,
    ExecutionNotSent,
    ExecutionsInterrupted,
)
from tocsin.service_calls.execution.executor import INTERRUPTED
from tocsin.service_calls.messages import (
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    Instant,
    ScheduleTimer,
    StartExecution,
)


async def respond_ok(arrival: Arrival) -> bytes | None:
    return answer()


async def never(arrival: Arrival) -> bytes | None:
    await asyncio.Event().wait()
    return None


async def test_a_successful_execution_is_logged_and_reported() -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(201, b'{"id": 7}', "Content-Type: application/json", "X-A: 1", "x-a: 2", "Set-Cookie: s=1")

    async with Bench() as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url + "?a=b", headers={"X-Own": "1"}, body=b'{"n": 1}', correlation_id="corr")
        (ended,) = await bench.run(order)
        execution_id = bench.execution_id(order)
        assert isinstance(ended, ExecutionSucceeded)
        meta = ended.response_meta
        assert (meta.status, meta.body_snippet, meta.truncated) == (201, '{"id": 7}', False)
        assert meta.headers == {
            "content-type": "application/json",
            "x-a": "1, 2",
            "set-cookie": "[redacted]",
            "content-length": "9",
        }
        assert meta.latency_ms > 0
        started = bench.published(execution_id)[0]
        assert isinstance(started, ExecutionStarted)
        assert started.started_at <= ended.finished_at
        for envelope in bench.log.outbox:
            assert (envelope.tenant_id, envelope.correlation_id) == (bench.tenant_id, "corr")
            assert envelope.causation_id == order.envelope.id
            assert envelope.aggregate_id == order.envelope.aggregate_id
        start, end = bench.log.rows[execution_id]
        assert (start.request_method, start.request_url) == ("POST", service.url + "?a=b")
        assert start.request_headers == {"X-Own": "1", "content-type": "application/json", "x-correlation-id": "corr"}
        assert (start.request_body, start.correlation_id) == ('{"n": 1}', "corr")
        assert (end.response_status, end.response_headers, end.response_body) == (201, meta.headers, '{"id": 7}')
        assert end.error_message is None
        assert order.settled == "acked"
        begun, finished = bench.events
        assert isinstance(begun, ExecutionBegun)
        assert isinstance(finished, ExecutionFinished)
        assert (begun.execution_id, begun.destination) == (execution_id, service.url.removesuffix("/do"))
        assert (finished.result, finished.correlation_id) == ("succeeded", "corr")
        assert (bench.executor.in_flight, bench.executor.deferred) == (0, 0)


async def test_each_execution_is_signed_with_the_secret_current_at_its_time() -> None:
    first, second = new_secret(), new_secret()
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        bench.tenant_secrets[bench.tenant_id] = SigningSecrets(first)
        order = bench.order(service.url, body=b'{"n": 1}')
        await bench.run(order)
        message = bench.registry.open(order.envelope)
        assert isinstance(message, StartExecution)
        bench.tenant_secrets[bench.tenant_id] = SigningSecrets(second)
        again = msgspec.structs.replace(message, execution_id=bench.new_id())
        await bench.run(bench.delivery(again))
        for arrival, secret in zip(service.arrivals, (first, second), strict=True):
            headers = dict(arrival.headers)
            assert headers["webhook-id"] == message.service_call_id
            assert Webhook(secret).verify(arrival.body, headers) == {"n": 1}


async def test_a_given_correlation_header_is_kept_and_an_unsendable_id_is_omitted() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        await bench.run(bench.order(service.url, headers={"X-Correlation-ID": "own"}))
        await bench.run(bench.order(service.url, correlation_id="ä\r\nx"))
        own, none = (
            [value for name, value in arrival.headers if name.lower() == "x-correlation-id"]
            for arrival in service.arrivals
        )
        assert (own, none) == (["own"], [])


async def test_own_headers_with_underscores_replace_those_that_are_added() -> None:
    theirs = {"X_Correlation_Id": "own", "Content_Type": "text/x"}
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        (ended,) = await bench.run(bench.order(service.url, headers=theirs, body=b"1", correlation_id="corr"))
        assert isinstance(ended, ExecutionSucceeded)
        (arrival,) = service.arrivals
        sent = [
            pair
            for pair in arrival.headers
            if pair[0].lower().replace("_", "-") in ("x-correlation-id", "content-type")
        ]
        assert sent == list(theirs.items())


@each("status", [200, 204, 299])
async def test_a_2xx_response_is_a_success(status: int) -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(status, b"")

    async with Bench() as bench, Service(reply, bench.changes) as service:
        (ended,) = await bench.run(bench.order(service.url))
        assert isinstance(ended, ExecutionSucceeded)


@each("status", [302, 304, 400, 404, 429, 500, 503])
async def test_any_other_status_is_a_failure_with_its_response(status: int) -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(status, b"" if status == 304 else b"sorry", "x-why: because")

    async with Bench() as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url)
        (ended,) = await bench.run(order)
        assert isinstance(ended, ExecutionFailed)
        assert (ended.error_meta.kind, ended.error_meta.message) == ("HTTP_STATUS", f"HTTP {status}")
        assert ended.error_meta.latency_ms > 0
        assert ended.response_meta is not None
        assert (ended.response_meta.status, ended.response_meta.headers["x-why"]) == (status, "because")
        _, end = bench.log.rows[bench.execution_id(order)]
        assert (end.response_status, end.error_message) == (status, f"HTTP_STATUS: HTTP {status}")
        assert bench.events[-1].result == "HTTP_STATUS"
        assert len(service.arrivals) == 1


async def test_a_late_response_is_a_timeout() -> None:
    async with Bench(limited(request_timeout_us=50_000)) as bench, Service(never, bench.changes) as service:
        (ended,) = await bench.run(bench.order(service.url))
        assert isinstance(ended, ExecutionFailed)
        assert (ended.error_meta.kind, ended.response_meta) == ("TIMEOUT", None)
        assert ended.error_meta.latency_ms >= 50


@each(
    "url, spec, kind",
    [
        ("http://127.0.0.1:{port}/", {}, "CONNECTION_FAILED"),
        ("http://nowhere.invalid/", {}, "NAME_NOT_RESOLVED"),
        ("ftp://x/", {}, "INVALID_REQUEST"),
        ("http://u:p@x/", {}, "INVALID_REQUEST"),
        ("http://127.0.0.1:{port}/", {"headers": {"Host": "x"}}, "INVALID_REQUEST"),
        ("http://127.0.0.1:{port}/", {"method": "GET", "body": b"1"}, "INVALID_REQUEST"),
        ("http://127.0.0.1:{port}/", {"method": "TRACE"}, "INVALID_REQUEST"),
        ("http://127.0.0.1:{port}/", {"body": b'"\xff"'}, "INVALID_REQUEST"),
    ],
)
async def test_a_request_that_cannot_be_delivered_fails_with_its_kind(
    url: str, spec: dict[str, Any], kind: str
) -> None:
    async with Bench() as bench:
        order = bench.order(url.format(port=free_port()), **spec)
        (ended,) = await bench.run(order)
        assert isinstance(ended, ExecutionFailed)
        assert (ended.error_meta.kind, ended.response_meta) == (kind, None)
        start, end = bench.log.rows[bench.execution_id(order)]
        assert end.error_message == f"{kind}: {ended.error_meta.message}"
        assert "u:p" not in start.request_url
        assert bench.executor.in_flight == 0


async def test_a_forbidden_destination_is_refused() -> None:
    async with Bench(egress=EgressPolicy()) as bench, Service(respond_ok, bench.changes) as service:
        (ended,) = await bench.run(bench.order(service.url))
        assert isinstance(ended, ExecutionFailed)
        assert ended.error_meta.kind == "EGRESS_REFUSED"
        assert service.arrivals == []


async def test_stored_bodies_are_bounded_text() -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer(200, b"a\x00\xff" + b"b" * 100, "x-long: " + "c" * 100)

    limits = limited(snippet_bytes_max=20, response_headers_max=1)
    async with Bench(limits) as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url, body=b'"' + b"d" * 100 + b'"')
        (ended,) = await bench.run(order)
        assert isinstance(ended, ExecutionSucceeded)
        assert ended.response_meta.body_snippet == "a␀\ufffd" + "b" * 13
        assert ended.response_meta.truncated
        assert ended.response_meta.headers == {"x-long": "c" * 20}
        assert bench.log.rows[bench.execution_id(order)][0].request_body == "d" * 20
        assert service.arrivals[0].body == b"d" * 100


@each("name, scheme", [("x-api-key", ""), ("xsession", "Bearer "), ("x-API_KEYs", "sid=")])
async def test_no_secret_is_stored(name: str, scheme: str) -> None:
    secret = "uN3/qL0c+Zx7Rk1vTf92aBhw"

    async def echo(arrival: Arrival) -> bytes | None:
        lines = [f"{name}: {value}" for name, value in arrival.headers if not name.startswith("content-")]
        body = msgspec.json.encode([arrival.line, arrival.headers])
        return answer(200, body, f"x-seen: {secret}", *[line for line in lines if line.startswith("x")])

    async with Bench() as bench, Service(echo, bench.changes) as service:
        order = bench.order(f"{service.url}?page=1&{name}={secret}", headers={name: scheme + secret}, body=b'{"a": 1}')
        (ended,) = await bench.run(order)
        assert isinstance(ended, ExecutionSucceeded)
        assert secret in service.arrivals[0].line
        assert (name, scheme + secret) in service.arrivals[0].headers
        kept = repr(bench.log.rows) + repr(bench.log.outbox) + repr(bench.events)
        assert secret not in kept
        assert "page=1" in kept


# -- orders and deliveries


async def test_a_duplicate_order_is_executed_once() -> None:
    go = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await go.wait()
        return answer()

    async with Bench() as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url)
        message = bench.registry.open(order.envelope)
        again = [bench.delivery(message) for _ in range(4)]
        bench.log.open.clear()
        await bench.hand_over(order, again[0])
        await bench.hand_over(again[1])
        assert [delivery.settled for delivery in (order, *again)] == [None] * 5
        bench.log.open.set()
        await bench.changes.until(lambda: bool(service.arrivals))
        assert [delivery.settled for delivery in (order, *again[:2])] == ["acked"] * 3
        await bench.hand_over(again[2])
        assert again[2].settled == "acked"
        go.set()
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        await bench.hand_over(again[3])
        await bench.changes.until(lambda: again[3].settled == "acked")
        assert len(service.arrivals) == 1
        assert len(bench.log.outbox) == 2
        assert bench.executor.in_flight == 0


async def test_a_deleted_call_is_not_executed() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        gone, there = bench.order(service.url), bench.order(service.url)
        bench.log.unknown_calls.add(gone.envelope.aggregate_id)
        await bench.hand_over(gone, there)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(there)))
        assert gone.settled == "acked"
        assert len(service.arrivals) == 1


async def test_a_malformed_order_fails_alone() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        order = bench.order(service.url)
        bad = bench.delivery(
            StartExecution(bench.new_id(), bench.new_id(), bench.registry.open(order.envelope).request_spec)
        )
        bad.envelope = msgspec.structs.replace(bad.envelope, payload=msgspec.Raw(b'{"no": 1}'))
        other = bench.delivery(ScheduleTimer(bench.new_id(), Instant(1)))
        await bench.hand_over(bad, other, order)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        assert isinstance(bad.settled, InvalidMessage)
        assert isinstance(other.settled, InvalidMessage)
        assert len(service.arrivals) == 1


async def test_an_order_that_cannot_be_taken_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        taken, bad = bench.order(service.url), bench.order(f"{service.url}/bad")
        destination = bench.caller.destination

        def fail_for_one(url: str) -> str:
            if url.endswith("/bad"):
                raise RuntimeError("a fault")
            return destination(url)

        monkeypatch.setattr(bench.caller, "destination", fail_for_one)
        with pytest.raises(RuntimeError):
            await bench.handlers.handle([taken, bad])
        # So the bus delivers it again.
        assert (bad.kept, bench.executor.knows(bench.execution_id(bad))) == (False, False)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(taken)))
        assert taken.settled == "acked"


async def test_an_order_is_acknowledged_once_it_is_logged() -> None:
    go = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await go.wait()
        return answer()

    async with Bench(limited(executions_per_destination_max=64)) as bench, Service(reply, bench.changes) as service:
        bus = EmbeddedBus(BusLimits(), bench.registry.check, bench.observe)
        bench.handlers.attach(bus)
        await bus.start()
        orders = [bench.order(service.url) for _ in range(100)]
        bench.log.open.clear()
        publishing = asyncio.ensure_future(bus.publish([order.envelope for order in orders]))
        await bench.changes.until(lambda: bench.executor.deferred > 0)
        assert not publishing.done()
        bench.log.open.set()
        go.set()
        await publishing
        assert bus.waiting == 0
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in orders))
        assert len(service.arrivals) == 100
        await bus.drain()
        await bus.close()


# -- limits


async def test_executions_stay_within_the_limits() -> None:
    limits = limited(executions_in_flight_max=5, executions_per_destination_max=3)
    go = asyncio.Semaphore(0)

    async def reply(arrival: Arrival) -> bytes | None:
        await go.acquire()
        return answer()

    async with Bench(limits) as bench, Service(reply, bench.changes) as one, Service(reply, bench.changes) as two:
        orders = [bench.order(one.url) for _ in range(10)] + [bench.order(two.url) for _ in range(10)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: one.in_flight + two.in_flight == 5)
        assert (bench.executor.in_flight, bench.executor.deferred) == (5, 15)
        assert (one.in_flight, two.in_flight) == (3, 2)
        assert [order.settled for order in orders].count(None) == 15
        for _ in range(20):
            go.release()
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in orders))
        assert max(one.under_way_max, two.under_way_max) <= 3
        assert (bench.executor.in_flight, bench.executor.deferred) == (0, 0)


# -- a database that fails


async def test_a_request_that_did_not_leave_this_machine_is_sent_later() -> None:
    free = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await free.wait()
        return answer()

    scarce = CallbackLimits(agent_connections_max=1, connection_wait_max_us=5_000)
    async with Bench(callback_limits=scarce) as bench, Service(reply, bench.changes) as service:

        def not_sent() -> list[str]:
            return [event.code for event in bench.events if isinstance(event, ExecutionNotSent)]

        async def free_it_later() -> None:
            await bench.changes.until(lambda: len(not_sent()) >= 6)
            assert (len(service.arrivals), bench.executor.in_flight) == (1, 4)
            free.set()

        calls = [bench.order(service.url) for _ in range(4)]
        ends, _ = await asyncio.gather(bench.run(*calls), free_it_later())
        assert [type(end) for end in ends] == [ExecutionSucceeded] * 4
        assert len(service.arrivals) == 4
        assert set(not_sent()) == {"NO_CONNECTION_SLOT"}
        assert sum(isinstance(event, ExecutionBegun) for event in bench.events) == 4


async def test_no_request_is_sent_before_its_start_is_logged() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        bench.log.begin_failures = [StoreUnavailable("away")] * 3
        order = bench.order(service.url)
        await bench.run(order)
        assert [event.step for event in bench.events if isinstance(event, AgentStepFailed)] == ["execution begin"] * 3
        assert (len(service.arrivals), order.settled) == (1, "acked")


@each("failure, logged", [(StoreUnavailable("away"), False), (OutcomeUnknown("away"), False), (None, True)])
async def test_an_order_that_outlasts_start_timeout_in_an_outage_is_not_sent(
    failure: Exception | None, logged: bool
) -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        bench.log.open.clear()
        bench.log.begin_failures = [] if failure is None else [failure]
        bench.log.lost_commits = int(logged)
        order = bench.order(service.url)
        await bench.hand_over(order)
        # The write is under way.
        await asyncio.sleep(0)
        ordered_at = bench.clock.now_us()
        bench.clock.ahead_us = bench.limits.start_timeout_us
        bench.log.open.set()
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        started, ended = bench.published(bench.execution_id(order))
        assert isinstance(started, ExecutionStarted)
        assert isinstance(ended, ExecutionFailed)
        assert ended.error_meta.kind == "START_TIMEOUT"
        assert service.arrivals == []
        # What an earlier write has logged stays as it is.
        assert (started.started_at < ordered_at + bench.limits.start_timeout_us) == logged
        assert order.settled == "acked"


async def test_an_order_that_cannot_be_logged_fails_alone() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        bench.log.begin_failures = [DefiniteFailure("no")] * 3
        first, second = bench.order(service.url), bench.order(service.url)
        await bench.hand_over(first, second)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(second)))
        assert isinstance(first.settled, DefiniteFailure)
        assert second.settled == "acked"
        assert (bench.executor.in_flight, len(service.arrivals)) == (0, 1)
        await bench.run(first)  # The bus delivers it again.


async def test_a_commit_with_unknown_outcome_neither_loses_nor_repeats_a_call() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        known = bench.order(service.url)
        await bench.run(known)
        bench.log.lost_commits = 2
        orders = [bench.order(service.url) for _ in range(5)]
        repeated = bench.delivery(bench.registry.open(known.envelope))
        await bench.run(*orders)
        await bench.hand_over(repeated)
        await bench.changes.until(lambda: repeated.settled == "acked")
        assert len(service.arrivals) == 6
        assert len(bench.log.outbox) == 12


async def test_results_waiting_for_the_database_occupy_slots() -> None:
    limits = limited(executions_in_flight_max=3)
    async with Bench(limits) as bench, Service(respond_ok, bench.changes) as service:
        failure = StoreUnavailable("away")
        bench.log.finish_failures = [failure] * 10_000
        orders = [bench.order(service.url) for _ in range(7)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: len(service.arrivals) == 3)
        assert (bench.executor.in_flight, bench.executor.deferred) == (3, 4)
        assert not any(bench.has_ended(bench.execution_id(order)) for order in orders)
        bench.log.finish_failures.clear()
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in orders))
        assert len(service.arrivals) == 7


async def test_a_refused_result_is_written_again() -> None:
    async with Bench() as bench, Service(respond_ok, bench.changes) as service:
        bench.log.finish_failures = [DefiniteFailure("no")] * 5
        (ended,) = await bench.run(bench.order(service.url))
        assert isinstance(ended, ExecutionSucceeded)
        assert bench.executor.in_flight == 0


# -- the end of the process


async def test_drain_waits_for_executions_in_flight_and_starts_nothing_more() -> None:
    go = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await go.wait()
        return answer()

    async with Bench(limited(executions_per_destination_max=2)) as bench, Service(reply, bench.changes) as service:
        orders = [bench.order(service.url) for _ in range(4)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: service.in_flight == 2)
        draining = asyncio.ensure_future(bench.executor.drain(20_000_000))
        await asyncio.sleep(0)
        late = bench.order(service.url)
        await bench.hand_over(late)
        assert not draining.done()
        go.set()
        assert await draining
        assert [order.settled for order in (*orders, late)] == ["acked", "acked", None, None, None]
        assert len(service.arrivals) == len(bench.log.rows) == 2
        assert (await bench.log.unfinished(10)).rows == []
        assert await bench.executor.drain(0)


async def test_an_unfinished_execution_is_reported_at_the_next_start() -> None:
    async with Bench() as bench, Service(never, bench.changes) as service:
        orders = [bench.order(service.url) for _ in range(3)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: service.in_flight == 3)
        assert not await bench.executor.drain(1_000)
        await bench.caller.close()
        log = bench.log
        assert len((await log.unfinished(10)).rows) == 3
    async with Bench(limited(executions_in_flight_max=2), log=log) as after:
        assert await after.executor.recover() == 3
        for order in orders:
            execution_id = bench.execution_id(order)
            start, end = log.rows[execution_id]
            assert end.error_message == INTERRUPTED
            assert end.error_message.startswith("interrupted: ")
            event = after.end(execution_id)
            assert isinstance(event, ExecutionInterrupted)
            assert (event.started_at, event.noticed_at) == (start.started_at, end.finished_at)
        assert {envelope.correlation_id for envelope in log.outbox} == {
            order.envelope.correlation_id for order in orders
        }
        assert after.events == [ExecutionsInterrupted(3)]
        assert await after.executor.recover() == 0
        assert len(after.events) == 1


async def test_closing_the_http_client_interrupts_executions_without_failing_them() -> None:
    async with Bench() as bench, Service(never, bench.changes) as service:
        order = bench.order(service.url)
        await bench.hand_over(order)
        await bench.changes.until(lambda: service.in_flight == 1)
        await bench.caller.close()
        assert await bench.executor.drain(20_000_000)
        assert [row.execution_id for row in (await bench.log.unfinished(10)).rows] == [bench.execution_id(order)]
