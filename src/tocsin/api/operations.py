"""The table of operations: what can be asked, by whom, and how it is answered.

Dispatch, the OpenAPI document and the documentation page are all made from it.
"""

from __future__ import annotations

from tocsin.api.agent_operations import AGENT_OPERATIONS
from tocsin.api.operation import Operation, Reach
from tocsin.contract import wire
from tocsin.model.access import Role

__all__ = ["API_PREFIX", "OPERATIONS", "Operation", "Reach"]

API_PREFIX = "/api/v1"

_WRITE_ERRORS = {
    404: ("NAMESPACE_NOT_FOUND",),
    429: ("OVERLOADED",),
    503: ("SHARD_UNAVAILABLE", "REQUEST_EXPIRED"),
}
_CHANGE_ERRORS = {**_WRITE_ERRORS, 404: ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND"), 409: ("TIMER_NOT_PENDING",)}
_CREATE_ERRORS = {
    **_WRITE_ERRORS,
    409: ("TIMER_EXISTS", "IDEMPOTENCY_CONFLICT"),
    503: (*_WRITE_ERRORS[503], "CLUSTER_UPGRADING"),
}
_READ_ERRORS = {404: ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND"), 503: ("SHARD_UNAVAILABLE",)}

_KEY_HEADER = {
    "idempotency-key": "Names the create, so that it can be repeated, like the field `idempotencyKey`: 1 to 255 visible "
    "ASCII characters, quoted or not."
}
_TIMER_NAME = {"namespace": "default", "timerId": "order-17-reminder"}
_TIMER = {
    "namespace": "default",
    "id": "order-17-reminder",
    "delay": "24h",
    "callbackUrl": "https://shop.example/hooks/reminder",
    "payload": {"order": 17},
    "retryPolicy": {"maxAttempts": 5, "initialInterval": "1s"},
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="createTimer",
        method="POST",
        paths=(f"{API_PREFIX}/timers/create",),
        summary="Create a timer",
        description="Durable once answered. A pending timer of the same id is replaced, unless onConflict says otherwise; "
        "after one has finished, its id is free again. With an idempotency key the request can be sent again at any time: "
        "it creates one timer, which fires once.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.CreateTimer,
        answer=wire.Timer,
        errors=_CREATE_ERRORS,
        example=_TIMER,
        request_headers=_KEY_HEADER,
        answer_headers={
            "tocsin-existing": "`true`: nothing was written, and the timer is the existing one (`onConflict: keep`).",
            "idempotency-replayed": "`true`: nothing was written; a former request with this key has created the timer.",
        },
    ),
    Operation(
        name="getTimer",
        method="POST",
        paths=(f"{API_PREFIX}/timers/get",),
        summary="Look at a timer",
        description="Also after it has finished, until its namespace's retention ends.",
        tag="Timers",
        role=Role.READ,
        reach=Reach.NAMESPACE,
        request=wire.TimerName,
        answer=wire.Timer,
        errors=_READ_ERRORS,
        example=_TIMER_NAME,
    ),
    Operation(
        name="updateTimer",
        method="POST",
        paths=(f"{API_PREFIX}/timers/update",),
        summary="Change a pending timer",
        description="Only what is named changes. A new executeAt begins anew: attempts are counted from zero.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.UpdateTimer,
        answer=wire.Timer,
        errors=_CHANGE_ERRORS,
        example={**_TIMER_NAME, "executeAt": "2027-01-31T12:00:00Z"},
    ),
    Operation(
        name="deleteTimer",
        method="POST",
        paths=(f"{API_PREFIX}/timers/delete",),
        summary="Cancel a pending timer",
        description="A call that is under way may still arrive; no retry follows it.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.TimerName,
        status=204,
        media_type=None,
        errors=_CHANGE_ERRORS,
        example=_TIMER_NAME,
    ),
    Operation(
        name="listTimers",
        method="POST",
        paths=(f"{API_PREFIX}/timers/list",),
        summary="List timers in execute order",
        description="Page by page: send nextCursor back as cursor until an answer has none. executeAfter is included, "
        "executeBefore is not.",
        tag="Timers",
        role=Role.READ,
        reach=Reach.NAMESPACE,
        request=wire.ListTimers,
        answer=wire.TimerPage,
        errors={404: ("NAMESPACE_NOT_FOUND",), 503: ("SHARD_UNAVAILABLE",)},
        example={"namespace": "default", "status": ["pending"], "limit": 100},
    ),
    Operation(
        name="batchCreateTimers",
        method="POST",
        paths=(f"{API_PREFIX}/timers/batch/create",),
        summary="Create many timers",
        description="Results come in the order of the timers sent. A timer that can't be created fails alone. The header "
        "Idempotency-Key stands for the key of each timer that has none.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.BatchCreateTimers,
        answer=wire.BatchResults,
        batch=True,
        errors={429: ("OVERLOADED",), 503: ("SHARD_UNAVAILABLE", "REQUEST_EXPIRED")},
        example={"timers": [_TIMER]},
        request_headers=_KEY_HEADER,
    ),
    Operation(
        name="createNamespace",
        method="POST",
        paths=(f"{API_PREFIX}/namespaces/create",),
        summary="Create a namespace",
        description="numShards is fixed for ever; everything else can be changed later.",
        tag="Namespaces",
        role=Role.ADMIN,
        reach=Reach.SERVICE,
        request=wire.CreateNamespace,
        answer=wire.Namespace,
        errors={409: ("NAMESPACE_EXISTS",), 503: ("SHARD_UNAVAILABLE",)},
        example={"name": "orders", "history": "all", "retention": "3d"},
    ),
    Operation(
        name="listNamespaces",
        method="POST",
        paths=(f"{API_PREFIX}/namespaces/list",),
        summary="List namespaces",
        description="Those that the key may see.",
        tag="Namespaces",
        role=Role.READ,
        reach=Reach.VISIBLE,
        request=wire.ListNamespaces,
        answer=wire.NamespaceList,
        body_optional=True,
        errors={503: ("SHARD_UNAVAILABLE",)},
    ),
    Operation(
        name="updateNamespace",
        method="POST",
        paths=(f"{API_PREFIX}/namespaces/update",),
        summary="Change a namespace",
        description="Only what is named changes. A paused namespace's timers wait and ring when it is resumed. Answered when "
        "every node goes by it, which takes seconds while one of them can't be reached.",
        tag="Namespaces",
        role=Role.ADMIN,
        reach=Reach.SERVICE,
        request=wire.UpdateNamespace,
        answer=wire.Namespace,
        errors={404: ("NAMESPACE_NOT_FOUND",), 409: ("CONFLICT",), 503: ("SHARD_UNAVAILABLE",)},
        example={"name": "orders", "paused": True},
    ),
    Operation(
        name="listAudit",
        method="POST",
        paths=(f"{API_PREFIX}/audit/list",),
        summary="List the audit trail",
        description="Sign-ins, sign-outs, and changes of keys and namespaces, newest first: who, when, from which address, "
        "on which node. Entries are kept for the setting `audit_retention`.",
        tag="Audit",
        role=Role.ADMIN,
        reach=Reach.SERVICE,
        request=wire.ListAudit,
        answer=wire.AuditPage,
        body_optional=True,
        errors={503: ("SHARD_UNAVAILABLE",)},
        example={"action": ["key_created", "key_deleted"], "limit": 100},
    ),
    *AGENT_OPERATIONS,
    Operation(
        name="getCluster",
        method="GET",
        paths=(f"{API_PREFIX}/cluster",),
        summary="Look at the cluster",
        description="Nodes, and every shard with its owner; window figures where the answering node owns the shard.",
        tag="Cluster",
        role=Role.READ,
        reach=Reach.SERVICE,
        answer=wire.Cluster,
        errors={503: ("SHARD_UNAVAILABLE",)},
    ),
    Operation(
        name="health",
        method="GET",
        paths=("/healthz",),
        summary="Is the process alive?",
        description="Answers as long as the process does. For restarts.",
        tag="Health",
        answer=wire.Health,
        any_query=True,
    ),
    Operation(
        name="readiness",
        method="GET",
        paths=("/readyz",),
        summary="Should it get traffic?",
        description="503 with the reasons while it should not. For load balancers.",
        tag="Health",
        answer=wire.Health,
        errors={503: ("NOT_READY",)},
        any_query=True,
    ),
    Operation(
        name="metrics",
        method="GET",
        paths=("/metrics",),
        summary="Metrics",
        description="In the text format of Prometheus.",
        tag="Health",
        role=Role.READ,
        reach=Reach.SERVICE,
        media_type="text/plain",
        any_query=True,
    ),
    Operation(
        name="openapi",
        method="GET",
        paths=(f"{API_PREFIX}/openapi.json", "/openapi.json"),
        summary="This description",
        description="OpenAPI 3.1.",
        tag="Documentation",
        documented=False,
        any_query=True,
    ),
    Operation(
        name="docs",
        method="GET",
        # The root too: who opens the address that `make run` prints should find something to read.
        paths=(f"{API_PREFIX}/docs", "/docs"),
        summary="A page to read it",
        description="The description as a page.",
        tag="Documentation",
        media_type="text/html",
        documented=False,
        any_query=True,
    ),
    Operation(
        name="docsScript",
        method="GET",
        paths=(f"{API_PREFIX}/docs.js", "/docs.js"),
        summary="The page's script",
        description="",
        tag="Documentation",
        media_type="text/javascript",
        documented=False,
        any_query=True,
    ),
    Operation(
        name="docsStyle",
        method="GET",
        paths=(f"{API_PREFIX}/docs.css", "/docs.css"),
        summary="The page's style",
        description="",
        tag="Documentation",
        media_type="text/css",
        documented=False,
        any_query=True,
    ),
)
