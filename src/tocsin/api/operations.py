"""The table of operations: what can be asked, by whom, and how it is answered.

Dispatch, the OpenAPI document and the documentation page are all made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from tocsin.api import wire
from tocsin.model.access import Role

API_PREFIX = "/api/v1"


class Reach(Enum):
    """What a key must reach, besides having the role."""

    #: No key is needed.
    OPEN = "open"
    #: The namespaces that the body names; the handler sees to it.
    NAMESPACE = "namespace"
    #: The role alone counts; the answer shows only what the key may see.
    VISIBLE = "visible"
    #: The whole service: a key that is limited to namespaces or tenants is refused.
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `errors` are the codes of its own, by status; those that every call can meet are added where it is
    described. `paths` beyond the first are aliases. `media_type` None: nothing is sent. `documented`: it stands in the
    OpenAPI document."""

    name: str
    method: str
    paths: tuple[str, ...]
    summary: str
    description: str
    tag: str
    role: Role | None = None
    reach: Reach = Reach.OPEN
    request: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    media_type: str | None = "application/json"
    body_optional: bool = False
    batch: bool = False
    errors: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    documented: bool = True

    @property
    def path(self) -> str:
        """Where it is found; the aliases are not described."""
        return self.paths[0]


_WRITE_ERRORS = {
    404: ("NAMESPACE_NOT_FOUND",),
    429: ("OVERLOADED",),
    503: ("SHARD_UNAVAILABLE", "REQUEST_EXPIRED"),
}
_CHANGE_ERRORS = {**_WRITE_ERRORS, 404: ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND"), 409: ("TIMER_NOT_PENDING",)}
_READ_ERRORS = {404: ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND"), 503: ("SHARD_UNAVAILABLE",)}

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
        description="Durable once answered. A pending timer of the same id is replaced; after one has finished, its id "
        "is free again. Sending the same request twice therefore leaves one timer.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.CreateTimer,
        answer=wire.Timer,
        errors=_WRITE_ERRORS,
        example=_TIMER,
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
        description="Only what is named changes. A new executeAt begins anew: attempts are counted from nought.",
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
        example={"namespace": "default", "status": "pending", "limit": 100},
    ),
    Operation(
        name="batchCreateTimers",
        method="POST",
        paths=(f"{API_PREFIX}/timers/batch/create",),
        summary="Create many timers",
        description="Results come in the order of the timers sent. A timer that can't be created fails alone.",
        tag="Timers",
        role=Role.WRITE,
        reach=Reach.NAMESPACE,
        request=wire.BatchCreateTimers,
        answer=wire.BatchResults,
        batch=True,
        errors={429: ("OVERLOADED",), 503: ("SHARD_UNAVAILABLE", "REQUEST_EXPIRED")},
        example={"timers": [_TIMER]},
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
        answer=wire.Namespaces,
        body_optional=True,
        errors={503: ("SHARD_UNAVAILABLE",)},
    ),
    Operation(
        name="updateNamespace",
        method="POST",
        paths=(f"{API_PREFIX}/namespaces/update",),
        summary="Change a namespace",
        description="Only what is named changes. A paused namespace's timers wait and ring when it is resumed.",
        tag="Namespaces",
        role=Role.ADMIN,
        reach=Reach.SERVICE,
        request=wire.UpdateNamespace,
        answer=wire.Namespace,
        errors={404: ("NAMESPACE_NOT_FOUND",), 503: ("SHARD_UNAVAILABLE",)},
        example={"name": "orders", "paused": True},
    ),
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
    ),
    Operation(
        name="openapi",
        method="GET",
        paths=(f"{API_PREFIX}/openapi.json", "/openapi.json"),
        summary="This description",
        description="OpenAPI 3.1.",
        tag="Documentation",
        documented=False,
    ),
    Operation(
        name="docs",
        method="GET",
        # The root too: who opens the address that `make run` prints should find something to read.
        paths=(f"{API_PREFIX}/docs", "/docs", "/"),
        summary="A page to read it",
        description="The description as a page.",
        tag="Documentation",
        media_type="text/html",
        documented=False,
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
    ),
)
