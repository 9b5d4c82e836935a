"""What an operation is: one call that can be made over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import msgspec

from tocsin.model.access import Role


class Reach(Enum):
    """What a key must reach, besides having the role."""

    #: No key is needed.
    OPEN = "open"
    #: The namespaces that the body names; the handler sees to it.
    NAMESPACE = "namespace"
    #: The tenant that the path names as `tenantId`.
    TENANT = "tenant"
    #: The tenant that the body names; the handler sees to it.
    NAMED_TENANT = "named tenant"
    #: The role alone counts; the answer shows only what the key may see.
    VISIBLE = "visible"
    #: The whole service: a key that is limited to namespaces or tenants is refused.
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the path or of the query. `repeated`: it may be given several times. Its limits are described where the
    limits in force are known."""

    name: str
    place: Literal["path", "query"]
    description: str
    example: str | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `errors` are the codes of its own, by status; those that every call can meet are added where it is
    described. `paths` beyond the first are aliases; a part in braces is a parameter. `media_type` None: nothing is sent.
    `request_headers`, `answer_headers`: headers of its own, with their meaning. `documented`: it stands in the OpenAPI
    document. `any_query`: its query is not looked at, for probes, scrapers and browsers add to it what they like; everywhere
    else anything unknown is refused."""

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
        """Where it is found; the aliases are not described."""
        return self.paths[0]

    @property
    def of_agent(self) -> bool:
        """Whether the service agent serves it, wherever that runs."""
        return self.reach in (Reach.TENANT, Reach.NAMED_TENANT)

    @property
    def templated(self) -> bool:
        """Whether its path has parameters."""
        return "{" in self.path
