"""Reads answers: JSON, or the error that an answer means."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

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

Answer = TypeVar("Answer")

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


def read_answer(reply: Reply, read: Callable[[Any], Answer]) -> Answer:
    """The answer that a 2xx contains. ServerError: it is not Tocsin's, as when a proxy or another service answers."""
    try:
        return read(json.loads(reply.body.decode()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _foreign(reply) from None


def check_empty(reply: Reply, expected_status: int) -> None:
    """ServerError: the answer is not the one that Tocsin gives where there is nothing to report."""
    if reply.status != expected_status:
        raise _foreign(reply)


def _foreign(reply: Reply) -> ServerError:
    return ServerError(
        f"the answer is not Tocsin's: {_start_of(reply)!r}; check that the URL is that of a Tocsin server",
        status=reply.status,
        code="",
    )


def error_of(reply: Reply) -> ApiError:
    """The error that an answer other than 2xx means."""
    code, message, fields, correlation_id = _problem_of(reply) or ("", _start_of(reply) or "no explanation", (), None)
    return class_of(code, reply.status)(
        message,
        status=reply.status,
        code=code,
        fields=fields,
        correlation_id=correlation_id or reply.headers.get("x-correlation-id"),
        retry_after=_retry_after(reply.headers),
    )


def _problem_of(reply: Reply) -> tuple[str, str, tuple[BadField, ...], str | None] | None:
    """The code, message, fields and correlation id of an error; None: it is not Tocsin's, as when a proxy answers."""
    try:
        problem = json.loads(reply.body)
        code, message, correlation_id = problem["error"], problem.get("message", ""), problem.get("correlationId")
        fields = tuple(BadField(each["path"], each["reason"]) for each in problem.get("errors") or ())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    texts = [code, message, correlation_id or "", *(text for each in fields for text in (each.path, each.reason))]
    return (code, message, fields, correlation_id) if all(isinstance(text, str) for text in texts) else None


def error_of_item(item: ItemError) -> ApiError:
    """The error of one timer of a batch."""
    error = class_of(item.error, item.status)(
        item.message,
        status=item.status,
        code=item.error,
        fields=tuple(BadField(each.path, each.reason) for each in item.errors),
    )
    error._is_of_item = True
    return error


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
