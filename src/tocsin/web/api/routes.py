"""Routing: from the path of a request to the operation that serves it, and its query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from msgspec import UNSET

from tocsin.model.access import EVERY
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.web.api.administration import AuditHandlers, KeyHandlers, NamespaceHandlers
from tocsin.web.api.calendars import CalendarHandlers
from tocsin.web.api.changes import ChangeReports
from tocsin.web.api.credentials import CredentialHandlers, SigningKeyHandlers
from tocsin.web.api.destinations import DestinationHandlers
from tocsin.web.api.failures import FailureHandlers
from tocsin.web.api.flows import FlowHandlers
from tocsin.web.api.inbox import InboxHandlers
from tocsin.web.api.jobs import JobHandlers
from tocsin.web.api.monitors import MonitorHandlers, PingHandlers
from tocsin.web.api.operation import Operation, Reach, declared_by
from tocsin.web.api.operators import OperatorHandlers
from tocsin.web.api.request import ApiLimits, ApiRequest
from tocsin.web.api.schedules import ScheduleHandlers
from tocsin.web.api.service_calls import ServiceCallHandlers
from tocsin.web.api.statistics import StatisticsHandlers
from tocsin.web.api.timers import TimerHandlers
from tocsin.web.http.access import require_namespace
from tocsin.web.http.reading import JsonReader

T = TypeVar("T")
#: Returns the answer (a wire struct, encoded JSON, `Content`, a `Response`, or None), an awaitable of it, or the request,
#: which will be completed with it.
Handler = Callable[..., object]

#: The handlers of all operations, in the order of the OpenAPI document.
FAMILIES = (
    TimerHandlers,
    ScheduleHandlers,
    FailureHandlers,
    JobHandlers,
    NamespaceHandlers,
    FlowHandlers,
    CalendarHandlers,
    CredentialHandlers,
    SigningKeyHandlers,
    MonitorHandlers,
    PingHandlers,
    DestinationHandlers,
    InboxHandlers,
    KeyHandlers,
    AuditHandlers,
    StatisticsHandlers,
    ServiceCallHandlers,
    OperatorHandlers,
)
OPERATIONS: tuple[Operation, ...] = tuple(operation for family in FAMILIES for operation in declared_by(family))

#: Maximum number of query parameters.
QUERY_FIELDS_MAX = 200


@dataclass(slots=True)
class Route:
    """An operation with its handler, prepared for serving. `reader` None: the handler gets no decoded body."""

    operation: Operation
    handler: Handler
    reader: JsonReader[Any] | None
    method: bytes
    body_bytes_max: int
    is_open: bool
    #: The field of the body with the namespace that the caller's key must cover; None: none has.
    scope: str | None
    #: Begins the request with the undecoded body, and returns whether it did; None: nothing does.
    shortcut: Callable[[ApiRequest, bytes], bool] | None
    #: Raises an error for a request whose body is not worth reading; None: nothing does.
    before_body: Callable[[ApiRequest], None] | None = None
    #: Gets each request with its answer, to report what it changes; None: nothing does.
    report: Callable[[ApiRequest, object], None] | None = None

    def start(self, request: ApiRequest) -> object:
        """Calls the handler with the decoded body. Raises InvalidInput, MalformedBody, Forbidden."""
        if self.reader is None:
            return self.handler(request)
        return self.handler(
            request, self.read(request, request.body or (b"{}" if self.operation.body_optional else b""))
        )

    def names_tenant(self, request: ApiRequest) -> bool:
        """Whether the request is about a tenant instead of a namespace. Raises the errors of `read`."""
        if self.operation.reach is not Reach.NAMESPACE_OR_TENANT:
            return False
        sent = self.read(request, request.body)
        return sent.tenant is not UNSET and sent.namespace is UNSET

    def read(self, request: ApiRequest, body: bytes) -> Any:
        """The decoded body, if the caller may do this in the namespace that it names. Raises InvalidInput, MalformedBody,
        Forbidden."""
        assert self.reader is not None
        sent = self.reader.read(body)
        if self.scope is not None and request.key is not None:
            role, namespace = self.operation.role, getattr(sent, self.scope)
            # Only lists take all namespaces, those that the key has access to; others refuse the name.
            if role is not None and namespace is not UNSET and namespace != EVERY:
                require_namespace(request.key, role, namespace)
        if self.report is not None:
            request.sent = sent
        return sent


class RouteMatch(NamedTuple, Generic[T]):
    """The routes of a path by method, and the values of the path's parameters."""

    by_method: dict[str, T]
    parameters: dict[str, str]

    @property
    def allowed(self) -> str:
        """The methods, as the Allow header lists them."""
        return ", ".join(self.by_method)


class Paths(Generic[T]):
    """The routes by path and method. A path without parameters is found with one lookup, and only as it is spelled: its
    percent-encoded spelling is another path, so that no proxy's rule about a path can be bypassed. In a path such as
    `/a/{b}/c`, a literal part takes precedence over a parameter, and a parameter is never empty."""

    def __init__(self) -> None:
        self._exact: dict[bytes, dict[str, T]] = {}
        self._templates: dict[tuple[bytes, ...], dict[str, T]] = {}

    def add(self, method: str, path: str, route: T, *, template: bool) -> None:
        """Adds the route of a method and path."""
        if not template:
            self._exact.setdefault(path.encode(), {})[method] = route
            return
        self._templates.setdefault(tuple(path.encode().split(b"/")), {})[method] = route
        self._templates = dict(sorted(self._templates.items(), key=lambda item: [_is_name(part) for part in item[0]]))

    def find(self, raw_path: bytes) -> RouteMatch[T] | None:
        """The routes of the path, percent-encoded as it was sent; None if there are none. Raises InvalidInput for a
        parameter that is not UTF-8."""
        exact = self._exact.get(raw_path)
        if exact is not None:
            return RouteMatch(exact, {})
        parts = raw_path.split(b"/")
        for template, by_method in self._templates.items():
            if len(parts) == len(template) and (values := _values(template, parts)) is not None:
                return RouteMatch(by_method, {name: _text(name, value) for name, value in values.items()})
        return None


def _is_name(part: bytes) -> bool:
    return part.startswith(b"{")


def _values(template: tuple[bytes, ...], parts: list[bytes]) -> dict[str, bytes] | None:
    """The values of the parameters, if the parts match. Decoded part by part: an encoded slash belongs to its part."""
    values = {}
    for wanted, sent in zip(template, parts, strict=True):
        part = unquote_to_bytes(sent) if b"%" in sent else sent
        if _is_name(wanted) and part:
            values[wanted[1:-1].decode()] = part
        elif part != wanted:
            return None
    return values


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidInput(FieldError(name, "is not percent-encoded UTF-8")) from None


class Routes(Paths["Route | None"]):
    """All routes. An operation without a handler is disabled: its path exists without a route. `direct` has those whose
    complete requests need no ASGI call, by path: they have nothing but a JSON body of limited size, and this node serves
    them. `reports` gets what requests change; None: nothing does."""

    def __init__(
        self,
        families: Sequence[object],
        limits: ApiLimits,
        *,
        metrics_open: bool,
        reports: ChangeReports | None = None,
    ) -> None:
        super().__init__()
        by_type = {type(handlers): handlers for handlers in families}
        self.direct: dict[bytes, Route] = {}
        # Besides the families that every server has, those that only this one has.
        declared = dict.fromkeys((*FAMILIES, *by_type))
        for operation, handlers in ((one, by_type.get(family)) for family in declared for one in declared_by(family)):
            route = (
                None
                if handlers is None
                else Route(
                    operation=operation,
                    handler=getattr(handlers, operation.handler),
                    reader=None if operation.request is None or operation.batch else JsonReader(operation.request),
                    method=operation.method.encode(),
                    body_bytes_max=limits.batch_request_bytes_max if operation.batch else limits.request_bytes_max,
                    is_open=operation.reach is Reach.OPEN or (operation.name == "metrics" and metrics_open),
                    scope=_scope_of(operation),
                    shortcut=None if operation.shortcut is None else getattr(handlers, operation.shortcut),
                    before_body=None if operation.before_body is None else getattr(handlers, operation.before_body),
                    report=None if reports is None else reports.of(operation),
                )
            )
            for path in operation.paths:
                for method in ("GET", "HEAD") if operation.method == "GET" else (operation.method,):
                    self.add(method, path, route, template="{" in path or operation.of_agent)
                if route is not None and route.reader is not None and _is_direct(operation):
                    self.direct[path.encode()] = route


def _scope_of(operation: Operation) -> str | None:
    if (
        operation.reach not in (Reach.NAMESPACE, Reach.NAMESPACE_OR_TENANT)
        or operation.request is None
        or operation.batch
    ):
        return None
    return "namespace" if "namespace" in operation.request.__struct_fields__ else "name"


def _is_direct(operation: Operation) -> bool:
    return (
        operation.method == "POST"
        and operation.reach not in (Reach.OPEN, Reach.NAMESPACE_OR_TENANT)
        and not (operation.batch or operation.body_optional or operation.any_query or operation.of_agent)
    )


def read_query(query: bytes, operation: Operation) -> Mapping[str, list[str]]:
    """The parameters of a query by name, in their order. Raises InvalidInput with the unknown parameters and those that must
    not be repeated, and for text that isn't UTF-8."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except UnicodeDecodeError:
        raise InvalidInput(FieldError("", "the query is not percent-encoded UTF-8")) from None
    except ValueError:
        raise InvalidInput(
            FieldError("", f"the query has more than {QUERY_FIELDS_MAX} parameters; send fewer")
        ) from None
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    none = "there are none" if operation.request is None else "there are none: send the fields in the body"
    errors = []
    for name, values in given.items():
        if name not in operation.query:
            there = f"parameters are: {', '.join(operation.query)}" if operation.query else none
            errors.append(FieldError(name, f"is not a query parameter here; {there}"))
        elif len(values) > 1 and name not in operation.repeated:
            errors.append(FieldError(name, f"is given {len(values)} times; give it once"))
    if errors:
        raise InvalidInput(*errors)
    return given
