"""The operations of the service agent; `tocsin.web.api.operations` has them in its table."""

from __future__ import annotations

from tocsin.model.access import Role
from tocsin.service_calls.api.validation import PAGE_DEFAULT
from tocsin.web.api.operation import Operation, Parameter, Reach
from tocsin.web.http import agent_wire

SERVICE_CALLS = "/api/tenants/{tenantId}/service-calls"

_TENANT_ID = Parameter(
    "tenantId",
    "path",
    "The tenant: a UUID of version 7. Tenants are not registered: any such id is valid, and has no calls until one is "
    "submitted under it. A key that is not limited to tenants has access to all of them.",
    example="01890a5d-ac96-774b-bcce-b302099a8057",
)
_SERVICE_CALL_ID = Parameter(
    "serviceCallId", "path", "The service call: a UUID of version 7.", example="01890a5d-ac96-774b-bcce-b302099a8058"
)
_TAG = Parameter("tag", "path", "The tag, percent-encoded.", example="star")
_ONE = (_TENANT_ID, _SERVICE_CALL_ID)

_COMMAND_ERRORS = {429: ("OVERLOADED",), 503: ("BROKER_UNAVAILABLE", "COMMAND_UNANSWERED", "COMMAND_FAILED")}
_NOT_FOUND = {404: ("SERVICE_CALL_NOT_FOUND",)}
_READ_ERRORS = {503: ("STORE_FAILURE",)}

AGENT_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="submitServiceCall",
        method="POST",
        paths=(SERVICE_CALLS,),
        summary="Submit a service call",
        description="Submits an HTTP request to make now, at `dueAt`, or after `delay`. The call is durable when the "
        "response arrives. With `serviceCallId` or `idempotencyKey` the submission is safe to repeat: the same "
        "request returns the existing call, a different one is a conflict; a repeated `delay` may be the remaining "
        "time. A failed attempt is final unless `requestSpec.retryPolicy` says otherwise.",
        tag="Service calls",
        role=Role.WRITE,
        reach=Reach.TENANT,
        request=agent_wire.SubmitServiceCall,
        answer=agent_wire.SubmittedServiceCall,
        status=202,
        errors={409: ("IDEMPOTENCY_CONFLICT",), **_COMMAND_ERRORS},
        example={
            "name": "Charge order 17",
            "serviceCallId": _SERVICE_CALL_ID.example,
            "requestSpec": {
                "method": "POST",
                "url": "https://pay.example/charges",
                "headers": {"x-shop": "eu"},
                "body": {"order": 17, "amount": "9.90"},
            },
            "tags": ["orders", "eu"],
        },
        parameters=(_TENANT_ID,),
        answer_headers={"location": "The path of the service call."},
    ),
    Operation(
        name="listServiceCalls",
        method="GET",
        paths=(SERVICE_CALLS,),
        summary="List service calls, newest first",
        description="Paginated: send nextCursor back as cursor until a response has none. A call must match all filters. "
        "A search by `name` reads a bounded number of calls per page, so that a page with a nextCursor may have few calls or "
        "none.",
        tag="Service calls",
        role=Role.READ,
        reach=Reach.TENANT,
        answer=agent_wire.ServiceCallPage,
        errors=_READ_ERRORS,
        parameters=(
            _TENANT_ID,
            Parameter(
                "status", "query", "A status, or several, separated by commas or as repeated parameters.", repeated=True
            ),
            Parameter("tag", "query", "A tag that calls must have; if repeated, all of the tags.", repeated=True),
            Parameter("name", "query", "Part of the call's name; ASCII letters match in either case."),
            Parameter("correlationId", "query", "The calls' correlation id: the calls that one request submitted."),
            Parameter("from", "query", "Submitted at or after this instant."),
            Parameter("to", "query", "Submitted before this instant."),
            Parameter("limit", "query", f"Maximum number of service calls on the page. Default {PAGE_DEFAULT}."),
            Parameter("cursor", "query", "`nextCursor` of the previous page."),
        ),
    ),
    Operation(
        name="tagServiceCall",
        method="PUT",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}/tags/{{tag}}",),
        summary="Tag a service call",
        description="Idempotent: a tag that the call already has is kept.",
        tag="Service calls",
        role=Role.WRITE,
        reach=Reach.TENANT,
        status=204,
        media_type=None,
        errors={400: ("TOO_MANY_TAGS",), **_NOT_FOUND, **_COMMAND_ERRORS},
        parameters=(*_ONE, _TAG),
    ),
    Operation(
        name="untagServiceCall",
        method="DELETE",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}/tags/{{tag}}",),
        summary="Remove a tag from a service call",
        description="Idempotent: removing a missing tag is not an error.",
        tag="Service calls",
        role=Role.WRITE,
        reach=Reach.TENANT,
        status=204,
        media_type=None,
        errors={**_NOT_FOUND, **_COMMAND_ERRORS},
        parameters=(*_ONE, _TAG),
    ),
    Operation(
        name="traceServiceCall",
        method="GET",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}/trace",),
        summary="Trace a service call",
        description="Everything stored under its correlation id: rows of tables, and messages with their causing message. In "
        "order of time, each entry after its cause.",
        tag="Service calls",
        role=Role.READ,
        reach=Reach.TENANT,
        answer=agent_wire.ServiceCallTrace,
        errors={**_NOT_FOUND, **_READ_ERRORS},
        parameters=_ONE,
    ),
    Operation(
        name="getServiceCall",
        method="GET",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}",),
        summary="Get a service call",
        description="With its outcome, attempts and executions. Secrets in headers and URLs are redacted.",
        tag="Service calls",
        role=Role.READ,
        reach=Reach.TENANT,
        answer=agent_wire.ServiceCall,
        errors={**_NOT_FOUND, **_READ_ERRORS},
        parameters=_ONE,
    ),
    Operation(
        name="deleteServiceCall",
        method="DELETE",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}",),
        summary="Delete a waiting service call",
        description="A Scheduled call is not made; a Retrying call is not attempted again. Its record is removed. A Running "
        "or finished call can't be deleted.",
        tag="Service calls",
        role=Role.WRITE,
        reach=Reach.TENANT,
        status=204,
        media_type=None,
        errors={**_NOT_FOUND, 409: ("SERVICE_CALL_NOT_SCHEDULED",), **_COMMAND_ERRORS},
        parameters=_ONE,
    ),
    Operation(
        name="rotateTenantSecret",
        method="POST",
        paths=("/api/v1/tenants/rotateSecret",),
        summary="Rotate a tenant's signing secret",
        description="From the first secret on, the tenant's service calls are signed as Standard Webhooks describes, with "
        "the call's id as `webhook-id`. A new secret signs immediately, and the previous one keeps signing during the grace "
        "period. Only this response shows the secret; send your own secret to make the request safe to repeat.",
        tag="Service calls",
        role=Role.ADMIN,
        reach=Reach.NAMED_TENANT,
        request=agent_wire.RotateTenantSecret,
        answer=agent_wire.RotatedTenantSecret,
        errors={409: ("ROTATION_PENDING",), **_READ_ERRORS},
        example={"tenantId": _TENANT_ID.example, "grace": "24h"},
    ),
)
