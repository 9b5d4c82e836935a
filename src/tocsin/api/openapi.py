"""The OpenAPI 3.1 description, made from the table of operations, the wire structs and the limits in force."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from tocsin.agent.limits import AgentLimits
from tocsin.api import agent_openapi
from tocsin.api.call import ApiLimits
from tocsin.api.operation import Operation, Reach
from tocsin.api.operations import OPERATIONS
from tocsin.contract import agent_wire, wire
from tocsin.contract.audit import CURSOR_CHARS, FILTER_CHARS_MAX
from tocsin.contract.repeated import KEY_CHARS_MAX
from tocsin.model.condition import OnConflict
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.validation import METHODS, InputLimits

Json = dict[str, Any]

_INSTANT = {
    "format": "date-time",
    "pattern": r"^[0-9]{4}(-[0-9]{2}){2}[Tt][0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
}
_DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"}
_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = rf"^{_TOKEN}/{_TOKEN}( *; *[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?)?$"
_NAME = {"minLength": 1, "maxLength": 255, "pattern": r"^[A-Za-z0-9._:-]+$"}
_IDEMPOTENCY_KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]*$"}
_SECRET = {"minLength": 38, "maxLength": 94, "pattern": r"^whsec_[A-Za-z0-9+/]{32,88}={0,2}$"}

#: Fields of the answers that hold an instant.
_INSTANTS = (
    *("at", "executeAt", "createdAt", "updatedAt", "executedAt", "nextAttemptAt", "timestamp", "completeTo"),
    *agent_openapi.INSTANTS,
)

#: Errors that a call can meet besides its own.
_ALWAYS = {431: ("HEADERS_TOO_LARGE",), 500: ("INTERNAL",)}
_WITH_KEY = {401: ("UNAUTHENTICATED",), 403: ("FORBIDDEN",), 429: ("TOO_MANY_FAILURES",)}
_WITH_BODY: dict[int, tuple[str, ...]] = {
    400: ("INVALID_INPUT", "MALFORMED_BODY"),
    408: ("REQUEST_TIMEOUT",),
    413: ("BODY_TOO_LARGE",),
    415: ("UNSUPPORTED_MEDIA_TYPE",),
}

_HEADERS: Json = {
    "x-correlation-id": {
        "description": "Names the request in the logs: the one that was sent, or a new one.",
        "schema": {"type": "string"},
    }
}
_RETRY_AFTER: Json = {
    "retry-after": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer", "minimum": 1}}
}


def describe(
    limits: InputLimits,
    api_limits: ApiLimits,
    agent_limits: AgentLimits | None,
    *,
    metrics_open: bool,
    keys_required: bool,
) -> bytes:
    """The document as JSON. Without `agent_limits` the service agent is switched off and left out."""
    operations = [
        operation
        for operation in OPERATIONS
        if operation.documented and not (operation.reach is Reach.TENANT and agent_limits is None)
    ]
    structs = [struct for operation in operations for struct in (operation.request, operation.answer) if struct]
    _, schemas = msgspec.json.schema_components([*structs, wire.Problem], ref_template="#/components/schemas/{name}")
    _constrain(schemas, limits, api_limits, agent_limits)
    paths: Json = {}
    for operation in operations:
        is_open = operation.reach is Reach.OPEN or (operation.name == "metrics" and metrics_open)
        described = _operation(operation, is_open, keys_required)
        if operation.parameters and agent_limits is not None:
            described["parameters"] = [
                agent_openapi.parameter(parameter, limits, agent_limits) for parameter in operation.parameters
            ]
        if operation.request_headers:
            described["parameters"] = [
                {"name": name, "in": "header", "required": False, "description": text, "schema": _IDEMPOTENCY_KEY}
                for name, text in operation.request_headers.items()
            ]
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": version("tocsin"),
            "summary": "A durable timer service.",
            "description": "Timers that call an HTTP webhook at their instant: at least once, never early, durable. "
            "Instants are RFC 3339 with a time zone, durations are texts such as 30s or 24h. Unknown fields are "
            "refused.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key made by `tocsin keys create`."}
            },
        },
    }
    return msgspec.json.encode(document)


def _operation(operation: Operation, is_open: bool, keys_required: bool) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "security": [] if is_open else [{"bearer": []}] if keys_required else [{"bearer": []}, {}],
    }
    if operation.role is not None and not is_open:
        described["description"] += f" Needs a key of role {operation.role.value}{_where(operation.reach)}."
    if operation.request is not None:
        content: Json = {"schema": _ref(operation.request)}
        if operation.example:
            content["example"] = operation.example
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": content},
        }
    described["responses"] = _responses(operation, is_open)
    return described


def _where(reach: Reach) -> str:
    return {Reach.SERVICE: " that is not limited to namespaces or tenants", Reach.TENANT: " for the tenant"}.get(
        reach, ""
    )


def _responses(operation: Operation, is_open: bool) -> Json:
    own_headers = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in operation.answer_headers.items()
    }
    success: Json = {"description": "Done.", "headers": {**_HEADERS, **own_headers}}
    if operation.media_type is not None:
        schema = {"type": "string"} if operation.answer is None else _ref(operation.answer)
        success["content"] = {operation.media_type: {"schema": schema}}
    responses = {str(operation.status): success}
    errors: dict[int, tuple[str, ...]] = dict(_ALWAYS)
    errors.update({} if is_open else _WITH_KEY)
    errors.update(_WITH_BODY if operation.request is not None else {})
    if operation.request in (wire.CreateTimer, wire.UpdateTimer, agent_wire.SubmitServiceCall):
        errors[413] = (*errors[413], "PAYLOAD_TOO_LARGE")
    if not operation.any_query:
        errors[400] = errors.get(400, ("INVALID_INPUT",))
    for status, codes in operation.errors.items():
        errors[status] = (*errors.get(status, ()), *codes)
    for status, codes in sorted(errors.items()):
        headers = {**_HEADERS, **_RETRY_AFTER} if status in (429, 503) else _HEADERS
        responses[str(status)] = {
            "description": " or ".join(f"`{code}`" for code in codes),
            "headers": headers,
            "content": {"application/problem+json": {"schema": _ref(wire.Problem)}},
        }
    return responses


def _ref(struct: type[msgspec.Struct]) -> Json:
    return {"$ref": f"#/components/schemas/{struct.__name__}"}


def _constrain(schemas: Json, limits: InputLimits, api_limits: ApiLimits, agent_limits: AgentLimits | None) -> None:
    """Writes into the schemas what `tocsin.model.validation` and the agent check."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name in _INSTANTS:
                _target(field)["format"] = "date-time"
    call = _call_constraints(limits)
    constraints = _constraints(limits, api_limits, call)
    if agent_limits is not None:
        constraints |= agent_openapi.constraints(limits, agent_limits, _INSTANT, call)
    for struct, fields in constraints.items():
        for name, constraint in fields.items():
            _target(schemas[struct]["properties"][name]).update(constraint)
    schemas["CreateTimer"]["oneOf"] = [{"required": ["executeAt"]}, {"required": ["delay"]}]
    schemas["UpdateTimer"]["minProperties"] = 3
    for struct in ("CreateTimer", "UpdateTimer"):
        schemas[struct]["not"] = {"required": ["payload", "body"]}
    schemas["RawBody"]["oneOf"] = [{"required": [form]} for form in ("json", "text", "base64")]
    # A bad item doesn't make the batch bad: it gets an error in its place.
    schemas["BatchCreateTimers"]["properties"]["timers"]["items"] = {
        "anyOf": [_ref(wire.CreateTimer), {"description": "Anything else is answered by an error in its place."}]
    }


def _target(field: Json) -> Json:
    """Where constraints belong: in the part of a nullable field that isn't null."""
    for part in field.get("anyOf", ()):
        if part.get("type") not in (None, "null"):
            return part  # type: ignore[no-any-return]
    return field


def _call_constraints(limits: InputLimits) -> dict[str, Json]:
    """Of the fields that creating and updating share."""
    tags: Json = {
        "maxItems": limits.tags_max,
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1, "maxLength": limits.tag_chars_max, "pattern": _NO_CONTROL},
    }
    return {
        "callbackUrl": {"format": "uri", "maxLength": limits.url_chars_max, "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://"},
        "executeAt": _INSTANT,
        "payload": {"description": f"Any JSON, passed on as sent; at most {limits.payload_bytes_max} bytes."},
        "method": {"enum": list(METHODS)},
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
            "minimum": limits.callback_timeout_min_us / US_PER_SECOND,
            "maximum": limits.callback_timeout_max_us / US_PER_SECOND,
            "default": 10,
        },
        "tags": tags,
    }


def _constraints(limits: InputLimits, api_limits: ApiLimits, call: dict[str, Json]) -> dict[str, dict[str, Json]]:
    timer_id: Json = {"minLength": 1, "maxLength": limits.id_chars_max, "pattern": _NO_CONTROL}
    retention = {**_DURATION, "description": f"At most {format_duration(limits.retention_max_us)}."}
    return {
        "CreateTimer": {
            "namespace": _NAME,
            "id": timer_id,
            "delay": _DURATION,
            "onConflict": {"default": OnConflict.REPLACE},
            "idempotencyKey": _IDEMPOTENCY_KEY,
            **call,
        },
        "TimerName": {"namespace": _NAME, "timerId": timer_id},
        "UpdateTimer": {"namespace": _NAME, "timerId": timer_id, **call},
        "RetryPolicy": {
            "maxAttempts": {"minimum": 1, "maximum": limits.attempts_max, "default": 10},
            "maxAttemptsDuration": _DURATION,
            "initialInterval": {**_DURATION, "default": "5s"},
            "backoffMultiplier": {"minimum": 1, "maximum": limits.backoff_multiplier_max, "default": 3},
            "maxInterval": _DURATION,
        },
        "RawBody": {
            "json": {
                "description": f"Any JSON, sent to the byte as written; at most {limits.payload_bytes_max} bytes."
            },
            "text": {"maxLength": limits.payload_bytes_max},
            "base64": {
                "contentEncoding": "base64",
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                "maxLength": (limits.payload_bytes_max + 2) // 3 * 4,
            },
            "contentType": {"maxLength": limits.content_type_chars_max, "pattern": _MEDIA_TYPE},
        },
        "ListAudit": {
            "keyId": {"minLength": 1, "maxLength": FILTER_CHARS_MAX},
            "subject": {"minLength": 1, "maxLength": FILTER_CHARS_MAX},
            "after": _INSTANT,
            "before": _INSTANT,
            "limit": {"minimum": 1, "maximum": limits.list_rows_max, "default": 100},
            "cursor": {"pattern": f"^[A-Za-z0-9_-]{{{CURSOR_CHARS}}}$"},
        },
        "ListTimers": {
            "namespace": _NAME,
            "tags": call["tags"],
            "idPrefix": {"maxLength": limits.id_chars_max, "pattern": _NO_CONTROL},
            "executeAfter": _INSTANT,
            "executeBefore": _INSTANT,
            "limit": {"minimum": 1, "maximum": limits.list_rows_max, "default": 100},
            "cursor": {"minLength": 1, "maxLength": limits.cursor_chars_max, "pattern": _NO_CONTROL},
        },
        "BatchCreateTimers": {"timers": {"maxItems": api_limits.batch_items_max}},
        "CreateNamespace": {
            "name": _NAME,
            "numShards": {"minimum": 1, "maximum": limits.num_shards_max},
            "retention": retention,
            "secret": _SECRET,
        },
        "UpdateNamespace": {"name": _NAME, "retention": retention, "secret": _SECRET},
    }
