"""Spans of requests that create timers or submit service calls, where traces are collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tocsin.ports.tracing import CreateTraces
from tocsin.web.api.request import ApiRequest
from tocsin.web.http.convert import traceparent_of


@contextmanager
def traced(traces: CreateTraces | None, operation: str, request: ApiRequest) -> Iterator[str | None]:
    """Within it the request is handled; yields the `traceparent` that the created timers, or the submitted call,
    keep."""
    traceparent = traceparent_of(request.headers.get(b"traceparent"))
    if traces is None:
        yield traceparent
        return
    span = traces.begin(operation, traceparent)
    try:
        yield span.traceparent
    except BaseException as error:
        span.end(error)
        raise
    span.end(None)


def begin_traced(
    traces: CreateTraces,
    operation: str,
    traceparent: str | None,
    done: Callable[[object], None],
    begin: Callable[[str | None, Callable[[object], None]], None],
) -> None:
    """Calls `begin` with the `traceparent` that the created timers keep, and with what it calls once with the result. What it
    raises is the request's error."""
    span = traces.begin(operation, traceparent)

    def ended(result: object) -> None:
        span.end(result if isinstance(result, BaseException) else None)
        done(result)

    try:
        begin(span.traceparent, ended)
    except Exception as error:
        span.end(error)
        raise
