"""Reads answers: JSON, or the error that an answer means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tocsin_client._core.steps import Reply
from tocsin_client._error_bases import (
    ApiError,
    BadField,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Overloaded,
    ServerError,
    Unauthenticated,
    Unavailable,
)
from tocsin_client._generated.errors import CODES
from tocsin_client._generated.models import ItemError

#: For codes that this version doesn't know.
_KINDS: dict[int, type[ApiError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    429: Overloaded,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_MESSAGE_CHARS_MAX = 200


def read_json(reply: Reply) -> Any:
    """The answer's JSON. ServerError: it has none, as when a proxy answers instead."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise ServerError(
            f"the answer is not JSON: {_start_of(reply)!r}; check that the URL is that of a Tocsin server",
            status=reply.status,
            code="",
        ) from None


def error_of(reply: Reply) -> ApiError:
    """The error that an answer other than 2xx means."""
    try:
        problem = json.loads(reply.body)
    except ValueError:
        problem = None
    if not isinstance(problem, Mapping) or not isinstance(problem.get("error"), str):
        problem = {"message": _start_of(reply) or "no explanation"}
    code = problem.get("error", "")
    return class_of(code, reply.status)(
        str(problem.get("message", "")),
        status=reply.status,
        code=code,
        fields=tuple(BadField(str(each.get("path")), str(each.get("reason"))) for each in problem.get("errors") or ()),
        correlation_id=problem.get("correlationId") or reply.headers.get("x-correlation-id"),
        retry_after=_retry_after(reply.headers),
    )


def error_of_item(item: ItemError) -> ApiError:
    """The error of one timer of a batch."""
    return class_of(item.error, item.status)(
        item.message,
        status=item.status,
        code=item.error,
        fields=tuple(BadField(each.path, each.reason) for each in item.errors),
    )


def class_of(code: str, status: int) -> type[ApiError]:
    """The class of an error: by its code, by its status if this version doesn't know the code."""
    if code in CODES:
        return CODES[code]
    if status in _KINDS:
        return _KINDS[status]
    if 400 <= status < 500:
        return InvalidInput
    return ServerError


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; Tocsin sends no dates. A proxy's date counts as absent."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else None


def _start_of(reply: Reply) -> str:
    return reply.body[:_MESSAGE_CHARS_MAX].decode(errors="replace")
