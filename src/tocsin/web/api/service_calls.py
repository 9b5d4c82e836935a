"""The operations on service calls, and on the secrets that sign them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.errors import FieldError, Unavailable
from tocsin.model.explanation import WaitsFor
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import format_instant
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.ports.audit import AuditLog
from tocsin.ports.tracing import CreateTraces
from tocsin.service_calls.api.service_calls import CallWithExecutions, ServiceCalls
from tocsin.service_calls.api.validation import PageRequest
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord, ExecutionRecord, TraceEntry
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.access import listed_tenants, require_credentials, require_tenant
from tocsin.web.http.administration import rotation_details
from tocsin.web.http.convert import RequestParser, retry_answer, set_hooks
from tocsin.web.http.instants import optional_instant
from tocsin.web.http.repeated import HEADER as KEY_HEADER
from tocsin.web.http.repeated import REPLAYED, agreed_key, key_in, refuse_key

#: Returns the agent if it runs on this node. Called for each request, since the agent may move between nodes.
AgentSource = Callable[[], ServiceCalls | None]

_VERSION, _UNVERSIONED = "/api/v1/", "/api/"
_CALLS = f"{_VERSION}tenants/{{tenantId}}/service-calls"
_CALL = f"{_CALLS}/{{serviceCallId}}"


def _operation(name: str, path: str, role: Role, reach: Reach, **fields: Any) -> Operation:
    """An operation on service calls, which is also served without the version in its path."""
    aliases = (path.replace(_VERSION, _UNVERSIONED, 1),)
    return Operation(name, path, role, reach, aliases=aliases, **fields)


_read = partial(_operation, role=Role.READ, reach=Reach.TENANT, method="GET")
_change = partial(_operation, role=Role.WRITE, reach=Reach.TENANT, status=204)


class ServiceCallHandlers:
    """Handles submit, list, get, tag, untag, delete, retry, and trace; and rotation of a tenant's secret."""

    def __init__(
        self, agent: AgentSource, parser: RequestParser, audit: AuditLog, traces: CreateTraces | None = None
    ) -> None:
        self._agent = agent
        self._parser = parser
        self._audit = audit
        self._traces = traces

    @property
    def _calls(self) -> ServiceCalls:
        calls = self._agent()
        if calls is None:
            raise Unavailable("the service agent has just moved to another node; try again")
        return calls

    @_operation("submitServiceCall", _CALLS, Role.WRITE, Reach.TENANT, status=202)
    async def submit(self, request: ApiRequest, sent: wire.SubmitServiceCall) -> wire.SubmittedServiceCall:
        """Submits an HTTP request to make now, at `dueAt`, or after `delay`. The call is durable when the response arrives.
        With `serviceCallId`, `idempotencyKey` or the header Idempotency-Key the submission is safe to repeat: the same
        request returns the existing call, a different one is a conflict; a repeated `delay` may be the remaining time. A
        failed attempt is final unless `requestSpec.retryPolicy` allows more."""
        traceparent = request.trace(self._traces, "submitServiceCall")
        tenant_id = request.parameters["tenantId"]
        named = key_in(request.headers.get(KEY_HEADER))
        key = agreed_key(sent.idempotency_key, named)
        submission = sent.submission._replace(idempotency_key=key, traceparent=traceparent)
        calls = self._calls
        if submission.credentials:
            require_credentials(request.key, calls.credentials_namespace)
        submitted = await calls.submit(tenant_id, submission, request.correlation_id)
        root = _VERSION if request.path.startswith(_VERSION) else _UNVERSIONED
        place = f"{root}tenants/{tenant_id.lower()}/service-calls/{submitted.service_call_id}"
        replayed = () if submitted.created else (REPLAYED,)
        request.answer_headers = [(b"location", place.encode()), *replayed]
        return wire.SubmittedServiceCall(
            submitted.service_call_id, CallStatus(submitted.status), submitted.correlation_id
        )

    @_read(
        "listServiceCalls",
        _CALLS,
        query=("status", "tag", "name", "correlationId", "from", "to", "limit", "cursor"),
        repeated=("status", "tag"),
    )
    async def list(self, request: ApiRequest) -> wire.ServiceCallPage:
        """Paginated: send nextCursor back as cursor until a response has none. A call must match all filters. The tenant *
        lists the calls of all tenants that the API key has access to. Such a list, and a search by `name`, reads a bounded
        number of calls per page, so that a page with a nextCursor may have few calls or none."""
        query = request.query
        page = await self._calls.list(
            listed_tenants(request.key, request.parameters["tenantId"]),
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
        waits = self._calls.waits_for
        return wire.ServiceCallPage([_summary(record, waits(record)) for record in page.calls], cursor)

    @_change("tagServiceCall", f"{_CALL}/tags/{{tag}}", method="PUT")
    async def tag(self, request: ApiRequest) -> None:
        """Idempotent: a tag that the call already has is kept."""
        await self._calls.tag(*_key(request), request.parameters["tag"], request.correlation_id)

    @_change("untagServiceCall", f"{_CALL}/tags/{{tag}}", method="DELETE")
    async def untag(self, request: ApiRequest) -> None:
        """Idempotent: removing a missing tag is not an error."""
        await self._calls.untag(*_key(request), request.parameters["tag"], request.correlation_id)

    @_read("traceServiceCall", f"{_CALL}/trace")
    async def trace(self, request: ApiRequest) -> wire.ServiceCallTrace:
        """Everything stored under its correlation id: rows of tables, and messages with their causing message. In order of
        time, each entry after its cause."""
        record, entries = await self._calls.trace(*_key(request))
        return wire.ServiceCallTrace(
            record.service_call_id, record.correlation_id, [_trace_entry(entry) for entry in entries]
        )

    @_read("getServiceCall", _CALL)
    async def get(self, request: ApiRequest) -> wire.ServiceCall:
        """With its outcome, attempts and executions. Secrets in headers and URLs are redacted."""
        calls = self._calls
        detail = await calls.get(*_key(request))
        return _detail(detail, calls.waits_for(detail.call))

    @_change("deleteServiceCall", _CALL, method="DELETE")
    async def delete(self, request: ApiRequest) -> None:
        """A Scheduled call is not made; a Retrying call is not attempted again. Its record is removed. A Running or finished
        call can't be deleted."""
        await self._calls.delete(*_key(request), request.correlation_id)

    @_change("retryServiceCall", f"{_CALL}/retry", method="POST")
    async def retry(self, request: ApiRequest) -> None:
        """A Failed call is attempted once more, at once, with the same request, in the same log and under the same
        webhook-id, so that a service that has done the work recognises the repetition. If that fails, too, what is left of
        its retry policy follows. A call in another state can't be retried."""
        refuse_key(request.headers)
        await self._calls.retry(*_key(request), request.correlation_id)

    @Operation("rotateTenantSecret", f"{_VERSION}tenants/rotateSecret", Role.ADMIN, Reach.NAMED_TENANT)
    async def rotate(self, request: ApiRequest, sent: wire.RotateTenantSecret) -> wire.RotatedTenantSecret:
        """From the first secret on, the tenant's service calls are signed as Standard Webhooks describes, with the call's id
        as `webhook-id`. A new secret signs immediately, and the previous one keeps signing during the grace period. Only this
        response shows the secret; send your own secret to make the request safe to repeat."""
        if request.key is not None:
            require_tenant(request.key, Role.ADMIN, sent.tenant_id)
        refuse_key(request.headers)
        tenant_id = sent.tenant_id.lower()
        errors = []
        if not is_uuid7(tenant_id):
            reason = "is not a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057"
            errors.append(FieldError("tenantId", reason))
        rotation = self._parser.rotation(sent, errors)
        signing = await self._calls.rotate_secret(tenant_id, rotation.secret, rotation.grace_us, force=rotation.force)
        details = rotation_details("tenant", rotation)
        await self._audit.write(AuditAction.SECRET_ROTATED, request.actor, tenant_id, details)
        request.forbid_storing()
        return wire.RotatedTenantSecret(
            tenant_id=tenant_id,
            secret=rotation.secret,
            previous_until=optional_instant(signing.previous_until(request.now_us)),
        )


def _key(request: ApiRequest) -> tuple[str, str]:
    return request.parameters["tenantId"], request.parameters["serviceCallId"]


def _single(query: Mapping[str, list[str]], name: str) -> str | None:
    values = query.get(name)
    return None if values is None else values[0]


def _instant(query: Mapping[str, list[str]], name: str) -> str | None:
    """An instant contains no space: a space is the plus sign of an offset, sent without percent-encoding."""
    text = _single(query, name)
    return None if text is None else text.replace(" ", "+")


def _shown(record: CallRecord, waits_for: WaitsFor | None) -> dict[str, Any]:
    """The fields of a call in lists and in full."""
    return {
        "service_call_id": record.service_call_id,
        "tenant_id": record.tenant_id,
        "name": record.name,
        "status": CallStatus(record.status),
        "submitted_at": format_instant(record.submitted_at),
        "due_at": format_instant(record.due_at),
        "tags": list(record.tags),
        "correlation_id": record.correlation_id,
        "attempts": record.attempts,
        "next_attempt_at": optional_instant(record.next_attempt_at),
        "started_at": optional_instant(record.started_at),
        "finished_at": optional_instant(record.finished_at),
        "outcome": UNSET if record.outcome is None else msgspec.convert(record.outcome, wire.Outcome),
        "flow_key": UNSET if record.flow_key is None else record.flow_key,
        "waits_for": waits_for or UNSET,
    }


def _summary(record: CallRecord, waits_for: WaitsFor | None) -> wire.ServiceCallSummary:
    spec = record.request_spec
    return wire.ServiceCallSummary(
        **_shown(record, waits_for), request_spec=wire.RequestLine(spec.method, redact_url(spec.url))
    )


def _detail(detail: CallWithExecutions, waits_for: WaitsFor | None) -> wire.ServiceCall:
    spec, retry = detail.call.request_spec, detail.call.retry_policy
    answer = wire.ServiceCall(
        **_shown(detail.call, waits_for),
        request_spec=wire.ShownRequest(
            spec.method,
            redact_url(spec.url),
            redact_headers(spec.headers),
            spec.body,
            UNSET if retry is None else retry_answer(retry),
            UNSET if spec.credential is None else spec.credential,
        ),
        executions=[_execution(number, execution) for number, execution in enumerate(detail.executions, 1)],
    )
    set_hooks(answer, detail.call.hooks)
    return answer


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
        finished_at=optional_instant(record.finished_at),
        response=response,
        error_message=UNSET if record.error_message is None else record.error_message,
    )


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
