"""Spans of executions: their trace, what they report, and which requests have none."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.support.cases import each

from tocsin.model.answer import NoResponse, NotSent
from tocsin.ports.http import CallTrace, Reply, Request, Result
from tocsin.telemetry.tracing import Tracer

SUBMITTED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
URL = "https://pay.example:8443/charges"


class Sender:
    """A requester that answers at once with the next of its outcomes."""

    def __init__(self, *outcomes: Reply | NoResponse | NotSent) -> None:
        self._outcomes = list(outcomes)
        self.sent: list[Request] = []
        self.exporter = InMemorySpanExporter()
        self._traced = Tracer(SimpleSpanProcessor(self.exporter), 0, "node").traced_requester(self)

    def destination(self, url: str) -> str:
        return "https://pay.example:8443"

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        self.sent.append(request)
        done(Result(self._outcomes.pop(0), None, 5))

    def execute(self, traceparent: str | None, tenant: str = "t", call: str = "c", execution: str = "e") -> Request:
        """Sends a request through the tracer; the request as it was sent."""
        trace = None if traceparent is None else CallTrace(traceparent, tenant, call, execution)
        results: list[Result] = []
        self._traced.send(Request("PUT", URL, (), None, 1, trace=trace), results.append)
        assert len(results) == 1
        return self.sent[-1]

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


def reply(status: int) -> Reply:
    return Reply(status, (), b"", False)


def test_executions_of_a_call_share_a_trace_linked_to_its_submission() -> None:
    sender = Sender(reply(503), NoResponse("TIMEOUT"), reply(204))
    sent = [sender.execute(SUBMITTED, execution=f"e{number}") for number in range(3)]
    assert len({span.context.trace_id for span in sender.spans if span.context}) == 1
    outcomes = []
    for request, span in zip(sent, sender.spans, strict=True):
        assert span.context is not None
        trace_id, span_id = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
        assert trace_id not in SUBMITTED
        assert request.trace is not None
        assert request.trace.traceparent == f"00-{trace_id}-{span_id}-01"
        (link,) = span.links
        assert f"00-{link.context.trace_id:032x}-{link.context.span_id:016x}-01" == SUBMITTED
        found = dict(span.attributes or {})
        outcomes.append((found.pop("tocsin.outcome"), span.status.status_code))
        assert found.pop("http.response.status_code", None) or found.pop("error.type") == "TIMEOUT"
        assert found == {
            "http.request.method": "PUT",
            "server.address": "pay.example",
            "server.port": 8443,
            "tocsin.tenant.id": "t",
            "tocsin.service_call.id": "c",
            "tocsin.execution.id": request.trace.execution_id,
        }
    assert outcomes == [("failed", StatusCode.ERROR)] * 2 + [("succeeded", StatusCode.UNSET)]


def test_calls_of_two_tenants_with_one_id_have_two_traces() -> None:
    sender = Sender(reply(200), reply(200))
    sender.execute(SUBMITTED, tenant="t1")
    sender.execute(SUBMITTED, tenant="t2")
    assert len({span.context.trace_id for span in sender.spans if span.context}) == 2


@each("traceparent", [None, SUBMITTED[:-1] + "0", SUBMITTED[1:], "1" * len(SUBMITTED)])
def test_a_call_that_is_not_sampled_has_no_span_and_keeps_its_traceparent(traceparent: str | None) -> None:
    sender = Sender(reply(200))
    sent = sender.execute(traceparent).trace
    assert (sent and sent.traceparent) == traceparent
    assert sender.spans == ()


def test_a_request_that_was_not_sent_has_no_span() -> None:
    sender = Sender(NotSent("NO_CONNECTION_SLOT"))
    sender.execute(SUBMITTED)
    assert sender.spans == ()
