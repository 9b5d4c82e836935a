"""Routing: from the table of operations to the handler of each path."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.operations import OPERATIONS
from tocsin.web.api.request import ApiLimits, Begin, Encode, Handler
from tocsin.web.api.templates import Templates


@dataclass(slots=True)
class Route:
    """An operation with its handler, prepared for serving."""

    operation: Operation
    handler: Handler
    status: int
    content_type: bytes
    has_body: bool
    body_bytes_max: int
    is_open: bool
    is_head: bool


@dataclass(slots=True)
class DirectRoute:
    """An operation with a direct path: `begin` starts the request, and `encode` encodes its result when it is available."""

    method: bytes
    path: str
    body_bytes_max: int
    route: Route
    begin: Begin
    encode: Encode


class Routes:
    """All routes. `exact` has them by method and path, `allowed` the methods of each path for the Allow header, `templates`
    the paths with parameters. An operation without a handler is disabled: its path exists without a route."""

    def __init__(self, handlers: dict[str, Handler], limits: ApiLimits, metrics_open: bool) -> None:
        self.exact: dict[tuple[str, str], Route] = {}
        self.allowed: dict[str, str] = {}
        self.templates: Templates[Route | None] = Templates()
        for operation in OPERATIONS:
            is_open = operation.reach is Reach.OPEN or (operation.name == "metrics" and metrics_open)
            methods = ("GET", "HEAD") if operation.method == "GET" else (operation.method,)
            for path in operation.paths:
                # Requests for the agent may have to be relayed to another node, which the lookup of templates handles.
                exact = not operation.templated and not operation.of_agent
                if exact:
                    self.allowed[path] = ", ".join(methods)
                for method in methods:
                    if operation.name not in handlers:
                        self.templates.add(method, path, None)
                        continue
                    route = Route(
                        operation=operation,
                        handler=handlers[operation.name],
                        status=operation.status,
                        content_type=(operation.media_type or "").encode(),
                        has_body=operation.request is not None,
                        body_bytes_max=limits.batch_request_bytes_max if operation.batch else limits.request_bytes_max,
                        is_open=is_open,
                        is_head=method == "HEAD",
                    )
                    if exact:
                        self.exact[method, path] = route
                    else:
                        self.templates.add(method, path, route)


def direct_routes(
    direct: dict[str, tuple[Begin, Encode]], routes: dict[tuple[str, str], Route]
) -> dict[bytes, DirectRoute]:
    """The direct routes by path, as in the request line."""
    return {
        path.encode(): DirectRoute(method.encode(), path, route.body_bytes_max, route, *direct[route.operation.name])
        for (method, path), route in routes.items()
        if route.operation.name in direct
    }
