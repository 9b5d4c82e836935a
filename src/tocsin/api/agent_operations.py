"""The operations of the service agent; `tocsin.api.operations` has them in its table."""

from __future__ import annotations

from tocsin.agent.api.validation import PAGE_DEFAULT
from tocsin.api.operation import Operation, Parameter, Reach
from tocsin.http import agent_wire
from tocsin.model.access import Role

SERVICE_CALLS = "/api/tenants/{tenantId}/service-calls"

_TENANT_ID = Parameter(
    "tenantId",
    "path",
    "The tenant: a UUID of version 7. Tenants are not registered: any such id is one, and has no calls until one is "
    "submitted under it. Whoever's key is not limited to tenants reaches all of them.",
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
        description="An HTTP request to be made now, at `dueAt`, or after `delay`. Durable once answered. With "
        "`serviceCallId` or `idempotencyKey` it may be sent again: the same wish gives the call from before, another one is "
        "a conflict; of a `delay` what is left may be sent. A failed attempt is final unless `requestSpec.retryPolicy` says "
        "otherwise.",
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
        answer_headers={"location": "Where the service call is found."},
    ),
    Operation(
        name="listServiceCalls",
        method="GET",
        paths=(SERVICE_CALLS,),
        summary="List service calls, the newest first",
        description="Page by page: send nextCursor back as cursor until an answer has none. A call must meet all "
        "conditions given. A page of a search by `name` may have few calls or none and still a nextCursor: it looks at a "
        "bounded number of calls.",
        tag="Service calls",
        role=Role.READ,
        reach=Reach.TENANT,
        answer=agent_wire.ServiceCallPage,
        errors=_READ_ERRORS,
        parameters=(
            _TENANT_ID,
            Parameter(
                "status", "query", "One status, or several with commas between them or by repetition.", repeated=True
            ),
            Parameter("tag", "query", "A tag that it must have; all of them, when repeated.", repeated=True),
            Parameter("name", "query", "A part of its name; letters A to Z in either case."),
            Parameter(
                "correlationId", "query", "The correlation id that it goes by: the calls that one request led to."
            ),
            Parameter("from", "query", "Submitted at this instant or later."),
            Parameter("to", "query", "Submitted before this instant."),
            Parameter("limit", "query", f"Service calls on the page. Without it: {PAGE_DEFAULT}."),
            Parameter("cursor", "query", "`nextCursor` of the page before."),
        ),
    ),
    Operation(
        name="tagServiceCall",
        method="PUT",
        paths=(f"{SERVICE_CALLS}/{{serviceCallId}}/tags/{{tag}}",),
        summary="Tag a service call",
        description="A tag that is there stays.",
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
        summary="Take a tag off a service call",
        description="A tag that isn't there is fine.",
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
        summary="Follow a service call",
        description="Everything kept under its correlation id: rows of the tables, and messages with the message that "
        "caused each. In the order of time, nothing before what caused it.",
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
        summary="Look at a service call",
        description="With its outcome, its attempts and its executions. Secrets in headers and URLs are not shown.",
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
        summary="Delete a service call that waits",
        description="Scheduled: it is not made. Retrying: it is not made again. Nothing of it is kept. What runs or has "
        "finished stays.",
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
        description="With the first one, the tenant's service calls are signed from then on, as Standard Webhooks describes, "
        "with the call's id as `webhook-id`. Later ones sign at once, and what they replace until the grace ends, too. The "
        "secret is shown in this answer alone; send one of your own to be able to repeat the request.",
        tag="Service calls",
        role=Role.ADMIN,
        reach=Reach.NAMED_TENANT,
        request=agent_wire.RotateTenantSecret,
        answer=agent_wire.RotatedTenantSecret,
        errors={409: ("ROTATION_PENDING",), **_READ_ERRORS},
        example={"tenantId": _TENANT_ID.example, "grace": "24h"},
    ),
)
