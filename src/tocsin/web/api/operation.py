"""The declaration of an operation of the HTTP API, above the handler that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from tocsin.model.access import Role

HandlerMethod = TypeVar("HandlerMethod", bound=Callable[..., Any])

_NO_CONTENT = 204


class Reach(Enum):
    """The scope that a key must cover, besides having the role."""

    #: No key is needed.
    OPEN = "open"
    #: The namespaces that the body names; the handler checks it.
    NAMESPACE = "namespace"
    #: The tenant that the path names as `tenantId`.
    TENANT = "tenant"
    #: The tenant that the body names; the handler checks it.
    NAMED_TENANT = "named tenant"
    #: Only the role; the response shows only what is within the key's scope.
    VISIBLE = "visible"
    #: The whole service: a key that is limited to namespaces or tenants is refused.
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path or the query. `repeated`: it may be given several times."""

    name: str
    place: Literal["path", "query"]
    description: str
    example: str | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and the decorator of its handler, whose docstring is the description.

    The handler's annotations define what is sent and answered, unless `request` and `answer` do: its argument `sent` is the
    decoded body, and it returns the answer. `aliases` are further paths; a part of a path in braces is a parameter.
    `role` None: no key is needed. `key_required`: the request needs a key even on a server that requires none otherwise.
    `errors` are its own codes; the OpenAPI document adds those of every operation. `request_headers` and `answer_headers`
    are its own headers with their description. `documented`: it is in the OpenAPI document. `any_query`: its query is
    ignored, since probes, scrapers and browsers add parameters; other operations refuse unknown parameters. `other_answers`
    are those that a parameter asks for; `has_etag`: these have an ETag, and are answered 304 to a client that has it.
    """

    name: str
    path: str
    summary: str
    role: Role | None = None
    reach: Reach = Reach.OPEN
    tag: str = ""
    method: str = "POST"
    aliases: tuple[str, ...] = ()
    request: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    media_type: str = "application/json"
    body_optional: bool = False
    batch: bool = False
    key_required: bool = False
    errors: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    documented: bool = True
    parameters: tuple[Parameter, ...] = ()
    request_headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    any_query: bool = False
    other_answers: tuple[type[msgspec.Struct], ...] = ()
    has_etag: bool = False
    description: str = ""
    #: The name of the handler's method.
    handler: str = ""

    def __call__(self, handler: HandlerMethod) -> HandlerMethod:
        """Declares that the method of a handler class serves this operation."""
        hints = get_type_hints(handler)
        returned = hints["return"]
        is_struct = isinstance(returned, type) and issubclass(returned, msgspec.Struct)
        handler.__dict__["operation"] = replace(
            self,
            handler=handler.__name__,
            description=" ".join((handler.__doc__ or "").split()),
            request=self.request or hints.get("sent"),
            answer=self.answer or (returned if is_struct else None),
        )
        return handler

    @property
    def paths(self) -> tuple[str, ...]:
        """The path in the OpenAPI document, and its aliases."""
        return self.path, *self.aliases

    @property
    def has_answer(self) -> bool:
        """Whether a successful response has a body."""
        return self.status != _NO_CONTENT

    @property
    def of_agent(self) -> bool:
        """Whether the service agent serves it, on whichever node that runs."""
        return self.reach in (Reach.TENANT, Reach.NAMED_TENANT)


def declared_by(handlers: type) -> Iterator[Operation]:
    """The operations that a class of handlers declares."""
    for handler in vars(handlers).values():
        if (operation := getattr(handler, "operation", None)) is not None:
            yield operation
