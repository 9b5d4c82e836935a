"""The part of the OpenAPI document about service calls: the built-in limits, as schemas."""

from __future__ import annotations

from typing import Any

from tocsin.model.validation import InputLimits
from tocsin.service_calls.api.validation import CORRELATION_ID_CHARS_MAX
from tocsin.service_calls.limits import AgentLimits
from tocsin.web.api.operation import Parameter

Json = dict[str, Any]

#: Either case is accepted; the canonical form is lower case.
_UUID7 = {
    "format": "uuid",
    "pattern": r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$",
}
_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"

#: Fields of responses that hold an instant.
INSTANTS = ("submittedAt", "dueAt", "startedAt", "finishedAt", "nextAttemptAt")


def constraints(
    limits: InputLimits, agent_limits: AgentLimits, instant: Json, duration: Json, call: Json
) -> dict[str, dict[str, Json]]:
    """The constraints that validation checks, by schema and field. `call` has those of a timer's URL, method and headers,
    `instant` and `duration` those of an instant and a duration."""
    body_max = agent_limits.request_body_bytes_max
    return {
        "SubmitServiceCall": {
            "name": _text(agent_limits.name_chars_max),
            "dueAt": instant,
            "delay": duration,
            "tags": {
                "maxItems": agent_limits.tags_max,
                "uniqueItems": True,
                "items": {"type": "string", **_text(agent_limits.tag_chars_max)},
            },
            "serviceCallId": _UUID7,
            "idempotencyKey": {
                **_text(agent_limits.idempotency_key_chars_max),
            },
        },
        "RequestSpec": {
            "url": call["callbackUrl"],
            "method": {"$ref": "#/components/schemas/ServiceCallMethod"},
            "headers": {
                "propertyNames": {"pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
                "additionalProperties": {
                    "type": "string",
                    "pattern": r"^([\u0021-\u007e]([\t\u0020-\u007e]*[\u0021-\u007e])?)?$",
                },
            },
            "body": {
                "description": "Any JSON: a string is sent as plain text, any other value as JSON. At most "
                f"{body_max} bytes. Not with GET and HEAD.",
                "x-bytes-max": body_max,
                "x-tocsin-settings": ["agent.request_body_bytes_max"],
            },
        },
    }


def parameter(parameter: Parameter, limits: InputLimits, agent_limits: AgentLimits) -> Json:
    """The OpenAPI description of a parameter."""
    described: Json = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.place == "path",
        "schema": _schema(parameter, limits, agent_limits),
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _schema(parameter: Parameter, limits: InputLimits, agent_limits: AgentLimits) -> Json:
    tag: Json = {"type": "string", **_text(agent_limits.tag_chars_max)}
    schemas: dict[str, Json] = {
        "tenantId": {"type": "string", **_UUID7},
        "serviceCallId": {"type": "string", **_UUID7},
        "tag": {"type": "array", "items": tag, "maxItems": agent_limits.tags_max} if parameter.repeated else tag,
        "name": {"type": "string", **_text(agent_limits.name_chars_max)},
        "correlationId": {"type": "string", **_text(CORRELATION_ID_CHARS_MAX)},
        "status": {"type": "array", "items": {"$ref": "#/components/schemas/ServiceCallStatus"}},
        "from": {"type": "string", "format": "date-time"},
        "to": {"type": "string", "format": "date-time"},
        "limit": {"type": "integer", "minimum": 1, "maximum": agent_limits.page_max},
        "cursor": {"type": "string", "minLength": 1, "maxLength": limits.cursor_chars_max},
    }
    return schemas[parameter.name]


def _text(chars_max: int) -> Json:
    return {"minLength": 1, "maxLength": chars_max, "pattern": _NO_CONTROL}
