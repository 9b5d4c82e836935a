"""Traces for OpenTelemetry: a span for each request that creates timers or submits a service call, and one for each attempt.

A timer keeps the `traceparent` of the request that created it. Months may pass until it fires, too long for one trace, so
each firing has its own trace with a link to that request. Its id is computed from the firing's `webhook-id`: attempts
after a takeover, by another node, join the trace. A firing is sampled if its create was. Executions of a service call are
to its submission what attempts are to a create; the id of their trace is computed from tenant and call. Only this module
knows OpenTelemetry's packages, and imports them when tracing is on.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tocsin import __version__
from tocsin.model.answer import NoResponse, NotSent, Response
from tocsin.model.errors import TocsinError, Unavailable
from tocsin.model.setting import setting
from tocsin.model.setting_values import api_url, share
from tocsin.ports.http import Caller, Exchange, Invocation, Reply, Request, Requester, Result
from tocsin.ports.observer import AttemptFinished, Event

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import SpanContext

#: Seconds for sending a batch of spans, its repetitions included: how long a collector that is down delays a node's stop.
_EXPORT_TIMEOUT_S = 5.0
#: A valid `traceparent` whose last bit, the flag "sampled", is set.
_SAMPLED = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f][13579bdf]")
#: Ended attempts that wait for the engine's verdict, which follows at once but for those that are superseded.
_WAITING_MAX = 10_000
#: Timers to whose creates the span of a batch is linked; collectors keep so many by default.
_LINKS_MAX = 128


@dataclass(frozen=True, slots=True)
class TracingOptions:
    """Where spans go, and which requests are traced."""

    endpoint: str | None = setting(
        None,
        "URL of a collector for OTLP over HTTP, such as `http://127.0.0.1:4318`; spans go to its `/v1/traces`. "
        "Requires the extra `tocsin[otel]`. Unset: no spans.",
        rule=api_url,
    )
    sample_ratio: float = setting(
        0.01,
        "Share of requests without a `traceparent` of their own that are traced, from 0 to 1, with all callbacks of "
        "the timers that they create and all executions of the service calls that they submit. Higher values show "
        "more and cost more processor time.",
        rule=share,
    )


def open_tracer(options: TracingOptions, node: str) -> Tracer | None:
    """Sends spans to the endpoint's `/v1/traces`; None without an endpoint. Requires the extra `otel`."""
    if options.endpoint is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(endpoint=f"{options.endpoint}/v1/traces", timeout=_EXPORT_TIMEOUT_S)
    return Tracer(BatchSpanProcessor(exporter), options.sample_ratio, node)


class _Unsampled(NamedTuple):
    """The span of a request that is not sampled. Timers and calls keep what the caller sent."""

    traceparent: str | None

    def end(self, error: BaseException | None) -> None:
        """Nothing to report."""


class _Request:
    """A sampled request."""

    __slots__ = ("_begun_ns", "_context", "_operation", "_parent", "_tracer", "traceparent")

    def __init__(self, tracer: Tracer, operation: str, context: SpanContext, parent: SpanContext | None) -> None:
        self._tracer = tracer
        self._operation = operation
        self._context = context
        self._parent = parent
        self._begun_ns = time.time_ns()
        self.traceparent: str | None = _traceparent(context.trace_id, context.span_id)

    def end(self, error: BaseException | None) -> None:
        """Exports the span."""
        attributes: dict[str, Any] = {"tocsin.operation": self._operation}
        if error is not None:
            attributes["error.type"] = error.code if isinstance(error, TocsinError) else type(error).__qualname__
        self._tracer.export(
            self._operation, "SERVER", self._context, self._parent, self._begun_ns, time.time_ns(), attributes,
            # A refusal is no failure of the server.
            failed=isinstance(error, Unavailable) or not isinstance(error, TocsinError | None),
        )  # fmt: skip


class _Attempt(NamedTuple):
    """An attempt whose answer is there."""

    context: SpanContext
    created: SpanContext
    begun_ns: int
    ended_ns: int
    attributes: dict[str, Any]


class Tracer:
    """Makes spans and hands them to `processor`, whose thread exports them: nothing here waits for the collector."""

    def __init__(self, processor: SpanProcessor, sample_ratio: float, node: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._processor = processor
        self._ratio = sample_ratio
        self._random = random.Random(os.urandom(16))
        named = {"service.name": "tocsin", "service.version": __version__, "service.instance.id": node}
        self._resource = Resource.create(named)
        self._scope = InstrumentationScope("tocsin", __version__)
        self._waiting: dict[tuple[str, str, int], _Attempt] = {}

    def close(self) -> None:
        """Exports what is left, for some seconds at most."""
        while self._waiting:
            self._export_attempt(self._waiting.pop(next(iter(self._waiting))), None)
        self._processor.shutdown()

    # ---------------------------------------------------------------- requests

    def begin(self, operation: str, traceparent: str | None) -> _Unsampled | _Request:
        """The span of a request: sampled as the caller's is, and without one by the ratio."""
        parent = None
        if traceparent is not None:
            if not _is_sampled(traceparent):
                return _Unsampled(traceparent)
            parent = _context_of(traceparent)
        elif self._random.random() >= self._ratio:
            return _Unsampled(None)
        trace_id = self._id(128) if parent is None else parent.trace_id
        return _Request(self, operation, _context(trace_id, self._id(64)), parent)

    # ---------------------------------------------------------------- attempts

    def traced(self, caller: Caller) -> Caller:
        """The caller, with a span for each attempt of a sampled timer."""
        return _TracedCaller(caller, self)

    def begin_attempt(
        self, invocation: Invocation, done: Callable[[Exchange], None]
    ) -> tuple[Invocation, Callable[[Exchange], None]]:
        """The invocation with the span of this attempt as the receiver's parent, and a `done` that ends the span; both
        unchanged if it is not sampled."""
        if invocation.traceparent is None or not _is_sampled(invocation.traceparent):
            return invocation, done
        created = _context_of(invocation.traceparent)
        context = self._in_trace_of(invocation.message_id)
        begun_ns = time.time_ns()

        def ended(exchange: Exchange) -> None:
            outcome = exchange.outcome
            if not isinstance(outcome, NotSent):  # else it was no attempt, and is made again
                attributes = _answered(invocation.method, outcome) | {
                    "tocsin.namespace": invocation.namespace,
                    "tocsin.timer.id": invocation.timer_id,
                    "tocsin.attempt": invocation.attempt,
                    "tocsin.webhook_id": invocation.message_id,
                    "tocsin.lag_ms": max(invocation.fired_at - invocation.execute_at, 0) / 1e3,
                }
                waiting = self._waiting
                if len(waiting) >= _WAITING_MAX:
                    self._export_attempt(waiting.pop(next(iter(waiting))), None)
                waiting[invocation.namespace, invocation.timer_id, invocation.attempt] = _Attempt(
                    context, created, begun_ns, time.time_ns(), attributes
                )
            done(exchange)

        return msgspec.structs.replace(invocation, traceparent=_traceparent(context.trace_id, context.span_id)), ended

    def begin_batch(
        self, batch: Invocation, done: Callable[[Exchange], None]
    ) -> tuple[Invocation, Callable[[Exchange], None]]:
        """The same for a batch: one span for the request, linked to the creates of those of its timers that are sampled. Its
        trace is its own, since it belongs to the firings of several timers."""
        items = batch.items or ()
        created = [
            _context_of(item.traceparent) for item in items if item.traceparent and _is_sampled(item.traceparent)
        ]
        if not created:
            return batch, done
        context = self._in_trace_of(batch.message_id)
        begun_ns = time.time_ns()

        def ended(exchange: Exchange) -> None:
            outcome = exchange.outcome
            if not isinstance(outcome, NotSent):
                attributes = _answered(batch.method, outcome) | {
                    "tocsin.namespace": batch.namespace,
                    "tocsin.webhook_id": batch.message_id,
                    "tocsin.batch.items": len(items),
                }
                accepted = isinstance(outcome, Response) and 200 <= outcome.status < 300
                self.export(
                    "fire batch", "CLIENT", context, None, begun_ns, time.time_ns(), attributes,
                    failed=not accepted, links=created[:_LINKS_MAX],
                )  # fmt: skip
            done(exchange)

        return msgspec.structs.replace(batch, traceparent=_traceparent(context.trace_id, context.span_id)), ended

    def observe(self, event: Event) -> None:
        """Exports an attempt when the engine has judged its answer."""
        if self._waiting and isinstance(event, AttemptFinished):
            attempt = self._waiting.pop((event.namespace, event.timer_id, event.attempt), None)
            if attempt is not None:
                self._export_attempt(attempt, event)

    def _export_attempt(self, attempt: _Attempt, verdict: AttemptFinished | None) -> None:
        attributes = attempt.attributes
        if verdict is not None:
            attributes |= {"tocsin.outcome": verdict.outcome, **_server_of(verdict.destination)}
            if verdict.error is not None:
                attributes["tocsin.error"] = verdict.error
        failed = verdict is not None and verdict.outcome in {"retried", "failed"}
        self.export(
            "fire", "CLIENT", attempt.context, None, attempt.begun_ns, attempt.ended_ns, attributes,
            failed=failed, links=(attempt.created,),
        )  # fmt: skip

    # ---------------------------------------------------------------- executions

    def traced_requester(self, requester: Requester) -> Requester:
        """The requester, with a span for each execution of a sampled service call."""
        return _TracedRequester(requester, self)

    def begin_execution(
        self, request: Request, done: Callable[[Result], None], destination: Callable[[str], str]
    ) -> tuple[Request, Callable[[Result], None]]:
        """The request with the span of this execution as the receiver's parent, and a `done` that ends the span; both
        unchanged if it is not sampled. `destination` returns that of a URL."""
        trace = request.trace
        if trace is None or not _is_sampled(trace.traceparent):
            return request, done
        submitted = _context_of(trace.traceparent)
        context = self._in_trace_of(f"{trace.tenant_id}/{trace.service_call_id}")
        begun_ns = time.time_ns()

        def ended(result: Result) -> None:
            outcome = result.outcome
            if not isinstance(outcome, NotSent):  # else it was no attempt, and is made again
                succeeded = isinstance(outcome, Reply) and 200 <= outcome.status < 300
                attributes = _answered(request.method, outcome) | {
                    "tocsin.tenant.id": trace.tenant_id,
                    "tocsin.service_call.id": trace.service_call_id,
                    "tocsin.execution.id": trace.execution_id,
                    **_server_of(destination(request.url)),
                    "tocsin.outcome": "succeeded" if succeeded else "failed",
                }
                self.export(
                    "execute", "CLIENT", context, None, begun_ns, time.time_ns(), attributes,
                    failed=not succeeded, links=(submitted,),
                )  # fmt: skip
            done(result)

        header = _traceparent(context.trace_id, context.span_id)
        return request._replace(trace=trace._replace(traceparent=header)), ended

    # ---------------------------------------------------------------- spans

    def export(
        self,
        name: str,
        kind: str,
        context: SpanContext,
        parent: SpanContext | None,
        begun_ns: int,
        ended_ns: int,
        attributes: dict[str, Any],
        *,
        failed: bool,
        links: Sequence[SpanContext] = (),
    ) -> None:
        """Hands a span to the processor; if its queue is full, the span is dropped."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, SpanKind, Status, StatusCode

        self._processor.on_end(
            ReadableSpan(
                name=name,
                context=context,
                parent=parent,
                resource=self._resource,
                attributes=attributes,
                links=[Link(each) for each in links],
                kind=SpanKind[kind],
                status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
                start_time=begun_ns,
                end_time=ended_ns,
                instrumentation_scope=self._scope,
            )
        )

    def _in_trace_of(self, text: str) -> SpanContext:
        """A new span in the trace whose id is computed from the text."""
        return _context(int.from_bytes(sha256(text.encode()).digest()[:16], "big") or 1, self._id(64))

    def _id(self, bits: int) -> int:
        return self._random.getrandbits(bits) or 1


class _TracedCaller:
    """A Caller that reports the attempts of sampled timers."""

    def __init__(self, caller: Caller, tracer: Tracer) -> None:
        self._caller = caller
        self._tracer = tracer
        self.destination = caller.destination
        self.close = caller.close

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the attempt, or the batch of attempts."""
        begin = self._tracer.begin_attempt if invocation.items is None else self._tracer.begin_batch
        self._caller.invoke(*begin(invocation, done))


class _TracedRequester:
    """A Requester that reports the executions of sampled service calls."""

    def __init__(self, requester: Requester, tracer: Tracer) -> None:
        self._requester = requester
        self._tracer = tracer
        self.destination = requester.destination

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """Starts the request."""
        self._requester.send(*self._tracer.begin_execution(request, done, self.destination))


def _answered(method: str, outcome: Response | Reply | NoResponse) -> dict[str, Any]:
    """The attributes that every attempt has, which name the response or why there is none."""
    if isinstance(outcome, Response | Reply):
        return {"http.request.method": method, "http.response.status_code": outcome.status}
    return {"http.request.method": method, "error.type": outcome.code}


def _server_of(destination: str) -> dict[str, Any]:
    """The attributes that name the receiver, `scheme://host:port`, as OpenTelemetry's conventions have it; none of a caller
    within this process."""
    place = urlsplit(destination)
    return {} if place.port is None else {"server.address": place.hostname, "server.port": place.port}


def _traceparent(trace_id: int, span_id: int) -> str:
    return f"00-{trace_id:032x}-{span_id:016x}-01"


def _is_sampled(traceparent: str) -> bool:
    return _SAMPLED.fullmatch(traceparent) is not None


def _context(trace_id: int, span_id: int) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _context_of(traceparent: str) -> SpanContext:
    """Of a valid header that is sampled."""
    _, trace_id, span_id, _ = traceparent.split("-")
    return _context(int(trace_id, 16), int(span_id, 16))
