"""Errors of tools, as a model reads them."""

from __future__ import annotations

import logging

from tocsin.web.api.mcp.answers import Json
from tocsin.web.api.mcp.caller import ApiRefused
from tocsin.web.http.errors import bad_fields, client_message, error_code, problem_kind

_log = logging.getLogger("tocsin.api")


def refusal(error: Exception, correlation_id: str) -> Json:
    """The stable code, what went wrong and how to correct it, and the bad arguments. An error whose text is withheld from
    clients is logged."""
    if isinstance(error, ApiRefused):
        problem = error.problem
        fields = problem.get("errors") or []
        return {"error": problem.get("error"), "message": str(error), **({"errors": fields} if fields else {})}
    if problem_kind(error).hidden:
        _log.error("request failed", exc_info=error, extra={"path": "/mcp", "correlation_id": correlation_id})
    fields = [{"path": each.path, "reason": each.reason} for each in bad_fields(error)]
    return {
        "error": error_code(error),
        "message": client_message(error, correlation_id),
        **({"errors": fields} if fields else {}),
    }
