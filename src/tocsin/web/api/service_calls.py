"""Handlers of the operations on service calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import UNSET

from tocsin.model.errors import Unavailable
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.service_calls.api.ports import CallRecord, ExecutionRecord, TraceEntry
from tocsin.service_calls.api.service_calls import CallDetail, ServiceCalls
from tocsin.service_calls.api.validation import CallStatus, PageRequest
from tocsin.web.api.agent_operations import SERVICE_CALLS
from tocsin.web.api.request import ApiRequest, CustomResponse, Handler
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.agent_convert import submission
from tocsin.web.http.convert import retry_answer
from tocsin.web.http.instants import format_instant
from tocsin.web.http.reading import JsonReader

#: Returns the agent if it runs on this node. Called for each request, since the agent may move between nodes.
AgentSource = Callable[[], ServiceCalls | None]


class ServiceCallHandlers:
    """Handles submit, list, get, tag, untag, delete, and trace."""

    def __init__(self, agent: AgentSource) -> None:
        self._agent = agent
        self._encode = msgspec.json.Encoder().encode
        self._submit = JsonReader(wire.SubmitServiceCall)

    @property
    def _calls(self) -> ServiceCalls:
        calls = self._agent()
        if calls is None:
            raise Unavailable("the service agent has just moved to another node; try again")
        return calls

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {
            "submitServiceCall": self.submit,
            "listServiceCalls": self.list,
            "getServiceCall": self.get,
            "tagServiceCall": self.tag,
            "untagServiceCall": self.untag,
            "deleteServiceCall": self.delete,
            "traceServiceCall": self.trace,
        }

    async def submit(self, request: ApiRequest) -> CustomResponse:
        """Submits a call."""
        sent = submission(self._submit.read(request.body))
        tenant_id = request.parameters["tenantId"]
        submitted = await self._calls.submit(tenant_id, sent, request.correlation_id)
        answer = wire.SubmittedServiceCall(
            submitted.service_call_id, CallStatus(submitted.status), submitted.correlation_id
        )
        place = f"{SERVICE_CALLS.replace('{tenantId}', tenant_id.lower())}/{submitted.service_call_id}"
        return CustomResponse(self._encode(answer), "application/json", ((b"location", place.encode()),))

    async def list(self, request: ApiRequest) -> bytes:
        """Returns a page of calls."""
        query = request.query
        page = await self._calls.list(
            request.parameters["tenantId"],
            PageRequest(
                statuses=query.get("status", ()),
                tags=query.get("tag", ()),
                name=_single(query, "name"),
                correlation_id=_single(query, "correlationId"),
                submitted_from=_instant(query, "from"),
                submitted_to=_instant(query, "to"),
                limit=_single(query, "limit"),
                cursor=_single(query, "cursor"),
            ),
        )
        cursor = UNSET if page.cursor is None else page.cursor
        return self._encode(wire.ServiceCallPage([_summary(record) for record in page.calls], cursor))

    async def get(self, request: ApiRequest) -> bytes:
        """Returns a call with its executions."""
        return self._encode(_detail(await self._calls.get(*_key(request))))

    async def tag(self, request: ApiRequest) -> bytes:
        """Adds a tag."""
        await self._calls.tag(*_key(request), request.parameters["tag"], request.correlation_id)
        return b""

    async def untag(self, request: ApiRequest) -> bytes:
        """Removes a tag."""
        await self._calls.untag(*_key(request), request.parameters["tag"], request.correlation_id)
        return b""

    async def delete(self, request: ApiRequest) -> bytes:
        """Deletes a waiting call."""
        await self._calls.delete(*_key(request), request.correlation_id)
        return b""

    async def trace(self, request: ApiRequest) -> bytes:
        """Returns a call's trace."""
        record, entries = await self._calls.trace(*_key(request))
        answer = wire.ServiceCallTrace(
            record.service_call_id, record.correlation_id, [_trace_entry(entry) for entry in entries]
        )
        return self._encode(answer)


def _key(request: ApiRequest) -> tuple[str, str]:
    return request.parameters["tenantId"], request.parameters["serviceCallId"]


def _single(query: Mapping[str, list[str]], name: str) -> str | None:
    values = query.get(name)
    return None if values is None else values[0]


def _instant(query: Mapping[str, list[str]], name: str) -> str | None:
    """An instant contains no space: a space is the plus sign of an offset, sent without percent-encoding."""
    text = _single(query, name)
    return None if text is None else text.replace(" ", "+")


def _summary(record: CallRecord) -> wire.ServiceCallSummary:
    spec = record.request_spec
    return wire.ServiceCallSummary(
        service_call_id=record.service_call_id,
        tenant_id=record.tenant_id,
        name=record.name,
        status=CallStatus(record.status),
        submitted_at=format_instant(record.submitted_at),
        due_at=format_instant(record.due_at),
        tags=list(record.tags),
        correlation_id=record.correlation_id,
        request_spec=wire.RequestLine(spec.method, redact_url(spec.url)),
        attempts=record.attempts,
        next_attempt_at=_optional_instant(record.next_attempt_at),
        started_at=_optional_instant(record.started_at),
        finished_at=_optional_instant(record.finished_at),
        outcome=_outcome(record),
    )


def _detail(detail: CallDetail) -> wire.ServiceCall:
    record = detail.call
    spec = record.request_spec
    return wire.ServiceCall(
        service_call_id=record.service_call_id,
        tenant_id=record.tenant_id,
        name=record.name,
        status=CallStatus(record.status),
        submitted_at=format_instant(record.submitted_at),
        due_at=format_instant(record.due_at),
        tags=list(record.tags),
        correlation_id=record.correlation_id,
        request_spec=wire.ShownRequest(
            spec.method,
            redact_url(spec.url),
            redact_headers(spec.headers),
            spec.body,
            UNSET if record.retry_policy is None else retry_answer(record.retry_policy),
        ),
        attempts=record.attempts,
        executions=[_execution(number, execution) for number, execution in enumerate(detail.executions, 1)],
        next_attempt_at=_optional_instant(record.next_attempt_at),
        started_at=_optional_instant(record.started_at),
        finished_at=_optional_instant(record.finished_at),
        outcome=_outcome(record),
    )


def _execution(number: int, record: ExecutionRecord) -> wire.Execution:
    response: wire.ExecutedResponse | msgspec.UnsetType = UNSET
    if record.response_status is not None:
        response = wire.ExecutedResponse(
            record.response_status, redact_headers(record.response_headers or {}), record.response_body or ""
        )
    request = wire.ExecutedRequest(
        record.request_method,
        redact_url(record.request_url),
        redact_headers(record.request_headers),
        UNSET if record.request_body is None else record.request_body,
    )
    return wire.Execution(
        number=number,
        execution_id=record.execution_id,
        started_at=format_instant(record.started_at),
        request=request,
        finished_at=_optional_instant(record.finished_at),
        response=response,
        error_message=UNSET if record.error_message is None else record.error_message,
    )


def _outcome(record: CallRecord) -> wire.Outcome | msgspec.UnsetType:
    return UNSET if record.outcome is None else msgspec.convert(record.outcome, wire.Outcome)


def _trace_entry(entry: TraceEntry) -> wire.TraceEntry:
    return wire.TraceEntry(
        at=format_instant(entry.at),
        # Table names may be instances of a str subclass, which the encoder doesn't accept.
        kind=str(entry.kind),
        name=entry.name,
        id=entry.id,
        detail=entry.detail,
        causation_id=UNSET if entry.causation_id is None else entry.causation_id,
    )


def _optional_instant(instant_us: int | None) -> str | msgspec.UnsetType:
    return UNSET if instant_us is None else format_instant(instant_us)
