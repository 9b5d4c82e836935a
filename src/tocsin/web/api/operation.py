"""The declaration of an operation of the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import msgspec

from tocsin.model.access import Role


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
    """An operation. `errors` are its own codes by status; the OpenAPI document adds those of every operation. `paths` after
    the first are aliases; a part in braces is a parameter. `media_type` None: the response has no body. `request_headers`
    and `answer_headers` are its own headers with their description. `documented`: it is in the OpenAPI document.
    `any_query`: its query is ignored, since probes, scrapers and browsers add parameters; other operations refuse unknown
    parameters."""

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
    parameters: tuple[Parameter, ...] = ()
    request_headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    any_query: bool = False

    @property
    def path(self) -> str:
        """Its path in the OpenAPI document, without aliases."""
        return self.paths[0]

    @property
    def of_agent(self) -> bool:
        """Whether the service agent serves it, on whichever node that runs."""
        return self.reach in (Reach.TENANT, Reach.NAMED_TENANT)

    @property
    def templated(self) -> bool:
        """Whether its path has parameters."""
        return "{" in self.path
