"""Examples of problems for the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec
from scripts.openapi.codes import CODES, kind_of_code
from scripts.openapi.examples import CORRELATION_ID, CREATED, Json

from tocsin.web.http import wire
from tocsin.web.http.errors import problem_type
from tocsin.web.http.wire import BadField


def problem_examples() -> Json:
    """A problem for each code, by code."""
    return {code: {"summary": meant.when, "value": _problem(code, meant.example)} for code, meant in CODES.items()}


def _problem(code: str, message: str) -> Any:
    kind = kind_of_code(code)
    path, _, reason = message.partition(": ")
    named = kind.status in (400, 413) and bool(reason) and not path.count(" ")
    example = wire.Problem(
        type=problem_type(code),
        title=kind.title,
        status=kind.status,
        detail=message,
        instance="/api/v1/timers/create",
        error=code,
        message=message,
        timestamp=CREATED,
        correlation_id=CORRELATION_ID,
        errors=[BadField(path=path, reason=reason)] if named else [],
    )
    return msgspec.json.decode(msgspec.json.encode(example))
