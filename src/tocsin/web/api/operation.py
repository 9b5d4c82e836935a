"""The declaration of an operation of the HTTP API, above the handler that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar, get_type_hints

import msgspec

from tocsin.model.access import Role

HandlerMethod = TypeVar("HandlerMethod", bound=Callable[..., Any])


class Reach(Enum):
    """The scope that a key must cover, besides having the role."""

    #: No key is needed.
    OPEN = "open"
    #: The namespace that the body names as `namespace` or `name`; of a batch, which its handler checks, each item's.
    NAMESPACE = "namespace"
    #: The namespace that the body names, or else its tenant, which the handler checks: then the service agent serves it.
    NAMESPACE_OR_TENANT = "namespace or tenant"
    #: The tenant that the path names as `tenantId`.
    TENANT = "tenant"
    #: The tenant that the body names; the handler checks it.
    NAMED_TENANT = "named tenant"
    #: Only the role; the response shows only what is within the key's scope.
    VISIBLE = "visible"
    #: The whole service: a key that is limited to namespaces or tenants is refused.
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and the decorator of its handler, whose docstring describes it in the OpenAPI document. What else that
    document states is in `scripts/openapi/operations.py`.

    The handler's argument `sent` is the decoded body of the annotated type, unless `request` names it; the handler returns
    the answer. `aliases` are further paths; a part of a path in braces is a parameter. `role` None: no key is needed.
    `undecoded`: the handler reads the body itself, of at most the size of any other but a batch; `any_body`: the same, and
    the body may be of any type, or none.
    `key_required`: the request needs a key even on a server that requires none otherwise. `query` has the names of its query
    parameters, `repeated` of those that may be given several times; others are refused. `any_query`: its query is ignored,
    since probes, scrapers and browsers add parameters. `answer` makes the answer of what the handler returns, or completes
    the request with; None: that is the answer. `before_body` names the method that gets each request before its body is
    read, and may refuse it. `shortcut` names the method that gets each body first on the direct path, and
    serves the request if it can.
    """

    name: str
    path: str
    role: Role | None = None
    reach: Reach = Reach.OPEN
    method: str = "POST"
    aliases: tuple[str, ...] = ()
    request: type[msgspec.Struct] | None = None
    status: int = 200
    body_optional: bool = False
    batch: bool = False
    undecoded: bool = False
    any_body: bool = False
    key_required: bool = False
    query: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    any_query: bool = False
    answer: Callable[[Any, Any], object] | None = None
    before_body: str | None = None
    shortcut: str | None = None
    #: The name of the handler's method.
    handler: str = ""

    def __call__(self, handler: HandlerMethod) -> HandlerMethod:
        """Declares that the method of a handler class serves this operation."""
        request = self.request or get_type_hints(handler).get("sent")
        handler.__dict__["operation"] = replace(self, handler=handler.__name__, request=request)
        return handler

    @property
    def paths(self) -> tuple[str, ...]:
        """The path and its aliases."""
        return self.path, *self.aliases

    @property
    def scope(self) -> str:
        """Its name among the operations of a key: its path below the version, such as `timers/create`; `calls/` and what is
        done of those on service calls, whose paths have ids."""
        if "/service-calls" in self.path:
            return "calls/" + self.name.removesuffix("s").removesuffix("ServiceCall")
        return self.path.removeprefix("/api/v1").removeprefix("/")

    @property
    def of_agent(self) -> bool:
        """Whether the service agent serves it, on whichever node that runs."""
        return self.reach in (Reach.TENANT, Reach.NAMED_TENANT)


def declared_by(handlers: type) -> Iterator[Operation]:
    """The operations that a class of handlers declares."""
    for handler in vars(handlers).values():
        if (operation := getattr(handler, "operation", None)) is not None:
            yield operation
