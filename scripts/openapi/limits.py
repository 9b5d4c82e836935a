"""The schemas of parameters and headers, and what else limits requests besides the constraints of their fields
(`tocsin.web.http.constraints`)."""

from __future__ import annotations

from typing import Any

from tocsin.service_calls.api.validation import CORRELATION_ID_CHARS_MAX
from tocsin.web.api.request import ApiLimits
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import AGENT_LIMITS, Constraint, text_schema

Json = dict[str, Any]

#: By schema and field: limits of the API itself.
OF_API = {
    "BatchCreateTimers": {"timers": Constraint({"maxItems": ApiLimits().batch_items_max}, ("api.batch_items_max",))},
}
_UUID: Json = {"type": "string", "format": "uuid", **limits.UUID7.schema}
#: The tenant of a list, which may be all of them.
EVERY_OR_ID: Json = {
    "type": "string",
    "pattern": limits.UUID7.schema["pattern"].replace("^", r"^(\*|").replace("$", ")$"),
}
#: The schemas of parameters of paths and queries, by name; of a parameter that may be repeated, one value's.
PARAMETERS: dict[str, Json] = {
    "token": {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}$"},
    "event": {"type": "string", "pattern": "^(start|fail|[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$"},
    "tenantId": _UUID,
    "serviceCallId": _UUID,
    "tag": {"type": "string", **text_schema(AGENT_LIMITS.tag_chars_max)},
    "name": {"type": "string", **text_schema(AGENT_LIMITS.name_chars_max)},
    "correlationId": {"type": "string", **text_schema(CORRELATION_ID_CHARS_MAX)},
    "status": limits.component("ServiceCallStatus"),
    "from": {"type": "string", "format": "date-time"},
    "to": {"type": "string", "format": "date-time"},
    "limit": {"type": "integer", "minimum": 1, "maximum": AGENT_LIMITS.page_max},
    "cursor": {"type": "string", "minLength": 1, "maxLength": limits.LIMITS.cursor_chars_max},
    "view": {"type": "string", "enum": ["owners"]},
}
#: The schemas of request headers, by name.
REQUEST_HEADERS: dict[str, Json] = {
    "idempotency-key": dict(limits.IDEMPOTENCY_KEY.schema),
    "tocsin-first-try": {"type": "string", "enum": ["1"]},
    "if-none-match": {"type": "string"},
}
#: The maximum number of values of a parameter, where it is limited.
PARAMETER_VALUES_MAX = {"tag": AGENT_LIMITS.tags_max}
