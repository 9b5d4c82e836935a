"""What the handlers of all pages share, and how they declare their routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tocsin.model.access import Role
from tocsin.model.errors import NamespaceNotFound
from tocsin.model.namespace import DEFAULT_NAMESPACE, Namespace
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.statistics.counting import CallStatistics, Statistics
from tocsin.timers.jobs import Jobs
from tocsin.timers.schedules import Schedules
from tocsin.timers.service import TimerService
from tocsin.web.http.access import Keyring
from tocsin.web.http.convert import RequestParser
from tocsin.web.pages.calls.agent import Gate, Tenants
from tocsin.web.pages.calls.labels import TenantLabels
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.counts import Counts
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.outages import Outages
from tocsin.web.pages.pages import Pages

_H = TypeVar("_H", bound=Callable[..., Any])
#: Method, path pattern as Starlette writes it, handler.
RouteEntry = tuple[str, str, Handler]


@dataclass(frozen=True, slots=True)
class Site:
    """The collaborators of the handlers. `parser` and `rules` check what forms contain, as they do for the API."""

    service: TimerService
    schedules: Schedules
    jobs: Jobs
    parser: RequestParser
    rules: InputRules
    pages: Pages
    statistics: Statistics
    call_statistics: CallStatistics
    streams: Streams
    counts: Counts[object]
    gate: Gate
    tenants: Tenants
    keys: Keyring
    audit: AuditLog
    labels: TenantLabels
    outages: Outages
    limits: UiLimits


def route(method: str, path: str) -> Callable[[_H], _H]:
    """Declares a method of a `Part` as the handler of a route."""

    def declare(handler: _H) -> _H:
        vars(handler)["route"] = (method, path)
        return handler

    return declare


class Part:
    """The handlers of some pages."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._service = site.service
        self._parser = site.parser
        self._pages = site.pages
        self._statistics = site.statistics
        self._limits = site.limits
        self._id_chars_max = site.rules.limits.id_chars_max

    def routes(self) -> Sequence[RouteEntry]:
        """The declared routes, in the order of their declarations."""
        declared = [(name, vars(each)["route"]) for name, each in vars(type(self)).items() if hasattr(each, "route")]
        return [(method, path, self._handler(getattr(self, name))) for name, (method, path) in declared]

    def _handler(self, handler: Handler, *, relayed: bool = True) -> Handler:
        """What serves a route: the handler, or something around it."""
        return handler

    async def visible_namespaces(self, context: RequestContext, role: Role = Role.READ) -> list[Namespace]:
        """The namespaces in which the principal has a role."""
        return [each for each in await self._service.namespaces.all() if context.principal.may(role, each.name)]

    async def namespace(self, name: str) -> Namespace:
        """A namespace. Raises NamespaceNotFound."""
        known = next((each for each in await self._service.namespaces.all() if each.name == name), None)
        if known is None:
            raise NamespaceNotFound(f"no namespace {name!r}")
        return known


class CallPart(Part):
    """The handlers of pages about service calls: on a node without the agent, another node handles their requests."""

    def _handler(self, handler: Handler, *, relayed: bool = True) -> Handler:
        return self._site.gate(handler, relayed=relayed)


def preferred(namespaces: Sequence[Namespace]) -> str:
    """The namespace that a page shows unless another one is chosen."""
    names = [each.name for each in namespaces]
    return DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in names or not names else names[0]
