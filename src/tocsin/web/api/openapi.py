"""The OpenAPI 3.1 document, made from the table of operations, the wire structs and the built-in limits.

It does not depend on settings: every server of a release returns the same document, which is
`docs/reference/openapi.json`. Its prose says which limits settings change. ADR 47.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from tocsin.keys import NAME_CHARS_MAX, SCOPE_MAX
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.secrets import GRACE_US_MAX
from tocsin.model.validation import CONTENT_TYPE_CHARS_MAX, InputLimits
from tocsin.service_calls.limits import AgentLimits
from tocsin.web.api import agent_openapi
from tocsin.web.api.openapi_callback import webhooks
from tocsin.web.api.openapi_examples import answer_example, problem_examples
from tocsin.web.api.openapi_schemas import components, ref, target
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.operations import OPERATIONS
from tocsin.web.api.request import ApiLimits
from tocsin.web.http import agent_wire, wire
from tocsin.web.http.audit import CURSOR_CHARS, FILTER_CHARS_MAX
from tocsin.web.http.callback_wire import Callback, CallbackAnswer
from tocsin.web.http.errors import kind_of_code
from tocsin.web.http.repeated import KEY_CHARS_MAX

Json = dict[str, Any]

_INSTANT = {
    "format": "date-time",
    "pattern": r"^[0-9]{4}(-[0-9]{2}){2}[Tt][0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
}
_DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"}
_UUID7 = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"
_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = rf"^{_TOKEN}/{_TOKEN}( *; *[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?)?$"
_NAME = {"minLength": 1, "maxLength": 255, "pattern": r"^[A-Za-z0-9._:-]+$"}
_IDEMPOTENCY_KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]*$"}
_BASE64 = "[A-Za-z0-9+/]"
#: The base64 of 24 to 64 bytes: whole groups of four characters, of which the last may be padded.
_SECRET = {
    "minLength": 38,
    "maxLength": 94,
    "pattern": f"^whsec_(?:(?:{_BASE64}{{4}}){{8,20}}(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?"
    f"|(?:{_BASE64}{{4}}){{21}}(?:{_BASE64}{{2}}==)?)$",
}

#: Fields of responses that hold an instant.
_INSTANTS = (
    *("at", "executeAt", "createdAt", "updatedAt", "executedAt", "nextAttemptAt", "timestamp", "completeTo"),
    *("firedAt", "nextExecuteAt"),
    *("previousUntil", "previousSecretUntil", "expiresAt"),
    *agent_openapi.INSTANTS,
)
#: Fields of responses that hold a duration.
_DURATIONS = ("initialInterval", "maxInterval", "maxAttemptsDuration", "retention")

#: Errors of every operation, besides its own.
_ALWAYS = ("HEADERS_TOO_LARGE", "INTERNAL")
_WITH_KEY = ("UNAUTHENTICATED", "FORBIDDEN", "TOO_MANY_FAILURES")
_WITH_BODY = (
    "INVALID_INPUT",
    "MALFORMED_BODY",
    "REQUEST_TIMEOUT",
    "BODY_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "NO_ROOM_FOR_BODY",
)

_HEADERS: Json = {"x-correlation-id": {"$ref": "#/components/headers/CorrelationId"}}
_RETRY_AFTER: Json = {"retry-after": {"$ref": "#/components/headers/RetryAfter"}}
_SHARED_HEADERS: Json = {
    "CorrelationId": {
        "description": "Identifies the request in the logs: the id that the client sent, or a new one.",
        "schema": {"type": "string"},
    },
    "RetryAfter": {
        "description": "Seconds to wait before retrying.",
        "schema": {"type": "integer", "minimum": 1},
    },
}

_DESCRIPTION = """Durable timers that call an HTTP webhook at a given instant: at least once, never early.

Instants are RFC 3339 with a time zone; durations are strings such as `30s` or `24h`. Unknown fields are refused. Requests \
accept a timer's id as `id` or as `timerId`, whichever of them is described.

**Limits** are the defaults. Where `x-tocsin-settings` names settings, an operator can change the limit; the server \
enforces its own limits, and its errors name them.

**Keys**: a server on a loopback address requires no key until one exists; any other server requires a key for everything \
except health and documentation. `/metrics` can be opened to everybody. Operations on **service calls** return 404 \
`ROUTE_NOT_FOUND` if the service agent is disabled.

**Later releases** add operations, optional request fields, response fields, and enum values: a client must ignore what it \
doesn't know in responses. A request may contain only what is described here."""


@cache
def describe() -> bytes:
    """The document as indented JSON, identical to `docs/reference/openapi.json`."""
    limits, agent_limits = InputLimits(), AgentLimits()
    operations = [operation for operation in OPERATIONS if operation.documented]
    structs = [struct for operation in operations for struct in (operation.request, operation.answer) if struct]
    schemas = components([*structs, wire.Problem, Callback, CallbackAnswer])
    _constrain(schemas, limits, ApiLimits(), agent_limits)
    paths: Json = {}
    for operation in operations:
        described = _operation(operation)
        parameters = [
            *(agent_openapi.parameter(parameter, limits, agent_limits) for parameter in operation.parameters),
            *(
                {"name": name, "in": "header", "required": False, "description": text, "schema": _IDEMPOTENCY_KEY}
                for name, text in operation.request_headers.items()
            ),
        ]
        if parameters:
            described["parameters"] = parameters
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": version("tocsin"),
            "summary": "A durable timer service.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys([*(operation.tag for operation in operations), "Callbacks"])],
        "paths": paths,
        "webhooks": webhooks(schemas),
        "components": {
            "schemas": schemas,
            "examples": problem_examples(),
            "headers": _SHARED_HEADERS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key from `tocsin keys create`."}
            },
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _operation(operation: Operation) -> Json:
    is_open = operation.reach is Reach.OPEN
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "security": [] if is_open else [{"bearer": []}, {}],
    }
    if operation.role is not None:
        described["description"] += f" Requires a key of role {operation.role.value}{_where(operation.reach)}."
    if operation.request is not None:
        content: Json = {"schema": ref(operation.request)}
        if operation.example:
            content["example"] = operation.example
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": content},
        }
    described["responses"] = _responses(operation, is_open)
    return described


def _where(reach: Reach) -> str:
    return {
        Reach.SERVICE: " that is not limited to namespaces or tenants",
        Reach.TENANT: " for the tenant",
        Reach.NAMED_TENANT: " for the tenant",
    }.get(reach, "")


def _responses(operation: Operation, is_open: bool) -> Json:
    own_headers = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in operation.answer_headers.items()
    }
    success: Json = {"description": "Success.", "headers": {**_HEADERS, **own_headers}}
    if operation.answer is not None:
        content = {"schema": ref(operation.answer), "example": answer_example(operation.answer)}
        success["content"] = {operation.media_type: content}
    elif operation.has_answer:
        success["content"] = {operation.media_type: {"schema": {"type": "string"}}}
    responses = {str(operation.status): success}
    for status, codes in sorted(_errors(operation, is_open).items()):
        responses[str(status)] = {
            "description": " or ".join(f"`{code}`" for code in codes),
            "headers": {**_HEADERS, **_RETRY_AFTER} if status in (429, 503) else _HEADERS,
            "content": {
                "application/problem+json": {
                    "schema": ref(wire.Problem),
                    "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
                }
            },
        }
    return responses


def _errors(operation: Operation, is_open: bool) -> dict[int, list[str]]:
    """The operation's error codes, by status."""
    codes = [*operation.errors, *_ALWAYS]
    if not is_open:
        codes += _WITH_KEY
    if operation.request is not None:
        codes += _WITH_BODY
    elif not operation.any_query:
        codes.append("INVALID_INPUT")
    if operation.request in (wire.CreateTimer, wire.UpdateTimer, agent_wire.SubmitServiceCall):
        codes.append("PAYLOAD_TOO_LARGE")
    if operation.of_agent:
        codes.append("ROUTE_NOT_FOUND")
    found: dict[int, list[str]] = {}
    for code in codes:
        found.setdefault(kind_of_code(code).status, []).append(code)
    return found


def _constrain(schemas: Json, limits: InputLimits, api_limits: ApiLimits, agent_limits: AgentLimits) -> None:
    """Adds to the schemas the limits that `tocsin.model.validation` and the agent check."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name in _INSTANTS:
                target(field)["format"] = "date-time"
            elif name in _DURATIONS:
                target(field).update(_DURATION)
    call = _call_constraints(limits)
    constraints = _constraints(limits, api_limits, call)
    constraints |= agent_openapi.constraints(limits, agent_limits, _INSTANT, _DURATION, call)
    constraints["RotateTenantSecret"] = {"tenantId": {"pattern": _UUID7}, **_rotation()}
    for struct, fields in constraints.items():
        for name, constraint in fields.items():
            _apply(schemas[struct]["properties"][name], constraint)
    # Each request is described with one name of the id; the alias is accepted as well.
    for struct, described, other in (
        ("CreateTimer", "id", "timerId"),
        ("TimerName", "timerId", "id"),
        ("UpdateTimer", "timerId", "id"),
    ):
        del schemas[struct]["properties"][other]
        schemas[struct]["required"].append(described)
    # In a form that validators understand and generators ignore: they make no class of a choice of objects.
    schemas["CreateTimer"] |= {
        "if": {"required": ["executeAt"]},
        "then": {"not": {"required": ["delay"]}},
        "else": {"required": ["delay"]},
    }
    schemas["CreateTimer"]["not"] = {"required": ["payload", "body"]}
    schemas["UpdateTimer"] |= {
        "minProperties": 3,
        "allOf": [{"not": {"required": ["executeAt", "delay"]}}, {"not": {"required": ["payload", "body"]}}],
    }
    schemas["SubmitServiceCall"]["not"] = {"required": ["dueAt", "delay"]}
    schemas["RawBody"] |= {
        "if": {"required": ["json"]},
        "then": {"not": {"anyOf": [{"required": ["text"]}, {"required": ["base64"]}]}},
        "else": {
            "if": {"required": ["text"]},
            "then": {"not": {"required": ["base64"]}},
            "else": {"required": ["base64"]},
        },
    }


def _apply(field: Json, constraint: Json) -> None:
    """Constrains the field. Descriptions go to the field itself, constraints to the part of it that isn't null."""
    inner = dict(constraint)
    field.update(
        {name: inner.pop(name) for name in ("description", "x-tocsin-settings", "x-bytes-max") if name in inner}
    )
    if "$ref" in inner or inner.get("type") == "array":
        for name in ("type", "anyOf", "enum"):
            field.pop(name, None)
        field.update(inner)
    else:
        target(field).update(inner)


def by_settings(*names: str) -> Json:
    """Marks a limit as changeable by these settings."""
    return {"x-tocsin-settings": list(names)}


def _call_constraints(limits: InputLimits) -> dict[str, Json]:
    """The constraints of the fields that creating and updating share."""
    tags: Json = {
        "maxItems": limits.tags_max,
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1, "maxLength": limits.tag_chars_max, "pattern": _NO_CONTROL},
    }
    return {
        "callbackUrl": {
            "format": "uri",
            "maxLength": limits.url_chars_max,
            "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://",
        },
        "executeAt": {**_INSTANT, **by_settings("execute_past_max", "execute_ahead_max")},
        "delay": {**_DURATION, **by_settings("execute_ahead_max")},
        "payload": {
            "description": f"Any JSON, delivered exactly as sent; at most {limits.payload_bytes_max} bytes, and "
            f"{limits.payload_depth_max} levels of nested arrays and objects.",
            "x-bytes-max": limits.payload_bytes_max,
            **by_settings("payload_bytes_max", "payload_depth_max"),
        },
        "method": {"$ref": "#/components/schemas/CallbackMethod"},
        "headers": {
            "maxProperties": limits.headers_max,
            "propertyNames": {
                "maxLength": limits.header_name_chars_max,
                "pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            },
            "additionalProperties": {
                "type": "string",
                "maxLength": limits.header_value_chars_max,
                "pattern": r"^[\t\u0020-\u007e]*$",
            },
        },
        "callbackTimeoutSeconds": {
            "description": "Timeout of one attempt, in seconds. Default 10.",
            "minimum": limits.callback_timeout_min_us / US_PER_SECOND,
            "maximum": limits.callback_timeout_max_us / US_PER_SECOND,
            **by_settings("callback_timeout_max"),
        },
        "tags": tags,
    }


def _rotation() -> dict[str, Json]:
    return {
        "secret": _SECRET,
        "grace": {
            **_DURATION,
            "description": "How long the previous secret keeps signing: at most "
            f"{format_duration(GRACE_US_MAX)}; 0s: not at all. Default 24h.",
        },
    }


def _constraints(limits: InputLimits, api_limits: ApiLimits, call: dict[str, Json]) -> dict[str, dict[str, Json]]:
    timer_id: Json = {
        "minLength": 1,
        "maxLength": limits.id_chars_max,
        "pattern": _NO_CONTROL,
    }
    retention = {
        **_DURATION,
        "description": f"How long finished timers stay visible; at most {format_duration(limits.retention_max_us)}.",
        **by_settings("retention_max"),
    }
    rows = {"minimum": 1, "maximum": limits.list_rows_max, **by_settings("list_rows_max")}
    interval = {**_DURATION, **by_settings("retry_duration_max")}
    return {
        "CreateTimer": {"namespace": _NAME, "id": timer_id, "idempotencyKey": _IDEMPOTENCY_KEY, **call},
        "TimerName": {"namespace": _NAME, "timerId": timer_id},
        "UpdateTimer": {"namespace": _NAME, "timerId": timer_id, **call},
        "RetryPolicy": {
            "maxAttempts": {"minimum": 1, "maximum": limits.attempts_max, **by_settings("attempts_max")},
            "maxAttemptsDuration": interval,
            "initialInterval": interval,
            "backoffMultiplier": {
                "minimum": 1,
                "maximum": limits.backoff_multiplier_max,
            },
            "maxInterval": interval,
        },
        "RawBody": {
            "json": {
                "description": f"Any JSON, sent byte for byte as written; at most {limits.payload_bytes_max} bytes."
            },
            "text": {"maxLength": limits.payload_bytes_max},
            "base64": {
                "contentEncoding": "base64",
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                "maxLength": (limits.payload_bytes_max + 2) // 3 * 4,
            },
            "contentType": {"maxLength": CONTENT_TYPE_CHARS_MAX, "pattern": _MEDIA_TYPE},
        },
        "ListAudit": {
            "action": {"type": "array", "items": {"$ref": "#/components/schemas/AuditAction"}},
            "keyId": {"minLength": 1, "maxLength": FILTER_CHARS_MAX},
            "subject": {"minLength": 1, "maxLength": FILTER_CHARS_MAX},
            "after": _INSTANT,
            "before": _INSTANT,
            "limit": rows,
            "cursor": {"pattern": f"^[A-Za-z0-9_-]{{{CURSOR_CHARS}}}$"},
        },
        "ListTimers": {
            "namespace": _NAME,
            "status": {"type": "array", "items": {"$ref": "#/components/schemas/TimerStatus"}},
            "tags": call["tags"],
            "idPrefix": {"maxLength": limits.id_chars_max, "pattern": _NO_CONTROL},
            "executeAfter": _INSTANT,
            "executeBefore": _INSTANT,
            "limit": rows,
            "cursor": {"minLength": 1, "maxLength": limits.cursor_chars_max, "pattern": _NO_CONTROL},
        },
        "BatchCreateTimers": {
            "timers": {"maxItems": api_limits.batch_items_max, **by_settings("api.batch_items_max")},
        },
        "CreateNamespace": {
            "name": _NAME,
            "numShards": {"minimum": 1, "maximum": limits.num_shards_max},
            "retention": retention,
            "secret": _SECRET,
        },
        "RotateSecret": {"name": _NAME, **_rotation()},
        "CreateKey": {
            "name": {"maxLength": NAME_CHARS_MAX, "pattern": _NO_CONTROL},
            "namespaces": {"maxItems": SCOPE_MAX, "uniqueItems": True, "items": {"type": "string", **_NAME}},
            "tenants": {"maxItems": SCOPE_MAX, "uniqueItems": True, "items": {"type": "string", "pattern": _UUID7}},
            "expiresAt": _INSTANT,
        },
        "RevokeKey": {"keyId": {"minLength": 1, "maxLength": FILTER_CHARS_MAX}},
        "UpdateNamespace": {"name": _NAME, "retention": retention, "secret": _SECRET},
    }
