"""The OpenAPI 3.1 document, made from the server's operations and wire structs, the built-in limits, and the texts and
examples in this folder.

It does not depend on settings: `make docs` writes it into the package, to which `docs/reference/openapi.json` is a link, and
every server of a release returns that file. Its prose names the limits that settings change. ADR 47.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple, get_type_hints

import msgspec
from scripts.openapi.callback_wire import Callback, CallbackAnswer
from scripts.openapi.codes import CODES, kind_of_code
from scripts.openapi.examples import answer_example
from scripts.openapi.limits import EVERY_OR_ID, OF_API, PARAMETER_VALUES_MAX, PARAMETERS, REQUEST_HEADERS
from scripts.openapi.operations import OPERATIONS, PATH_PARAMETERS, About
from scripts.openapi.problems import problem_examples
from scripts.openapi.schemas import components, ref, request_structs, target
from scripts.openapi.webhook import webhooks

from tocsin.web.api.operation import Operation, Reach, declared_by
from tocsin.web.api.routes import FAMILIES
from tocsin.web.http import agent_wire, schedule_wire, wire
from tocsin.web.http.constraints import DURATION_SCHEMA, Constraint, constraints_of

Json = dict[str, Any]

_NO_CONTENT = 204
_IN_PATH = re.compile(r"{(\w+)}")

#: Fields of responses that hold an instant.
_INSTANTS = (
    *("at", "executeAt", "createdAt", "updatedAt", "executedAt", "nextAttemptAt", "timestamp", "completeTo"),
    *("firedAt", "nextExecuteAt", "from", "to", "pausedSince", "storeErrorAt"),
    *("previousUntil", "previousSecretUntil", "expiresAt"),
    *("submittedAt", "dueAt", "startedAt", "finishedAt"),
    *("anchor", "startAt", "endAt", "occurrenceAt", "instant", "firstAt", "lastAt"),
)
#: Fields of responses that hold a list of instants.
_INSTANT_LISTS = ("nextInstants", "instants")
#: Fields of responses that hold a duration.
_DURATIONS = ("initialInterval", "maxInterval", "maxAttemptsDuration", "retention", "every", "jitter", "catchUpWindow")

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

_OF_RULE = ("every", "anchor", "startAt", "endAt", "only", "skip", "onSkipped")
_WITH_PAYLOAD = (
    wire.CreateTimer,
    wire.UpdateTimer,
    schedule_wire.CreateSchedule,
    schedule_wire.UpdateSchedule,
    agent_wire.SubmitServiceCall,
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
`ROUTE_NOT_FOUND` if the service agent is disabled, those on the **inbox** if the server has none.

**Later releases** add operations, optional request fields, response fields, and enum values: a client must ignore what it \
doesn't know in responses. A request may contain only what is described here."""


class Described(NamedTuple):
    """An operation with what the document states about it. `answer` None: a successful response has no JSON body."""

    operation: Operation
    about: About
    tag: str
    text: str
    answer: type[msgspec.Struct] | None


def described() -> list[Described]:
    """The operations of the document, in its order."""
    tags = {name: (tag, about) for tag, group in OPERATIONS.items() for name, about in group.items()}
    found = []
    for family in FAMILIES:
        for operation in declared_by(family):
            if operation.name in tags:
                tag, about = tags[operation.name]
                handler = vars(family)[operation.handler]
                returned = get_type_hints(operation.answer or handler)["return"]
                is_struct = isinstance(returned, type) and issubclass(returned, msgspec.Struct)
                answer = about.answer or (returned if is_struct else None)
                found.append(Described(operation, about, tag, " ".join(handler.__doc__.split()), answer))
    return found


@cache
def describe() -> bytes:
    """The document as indented JSON."""
    operations = described()
    structs = [
        struct
        for each in operations
        for struct in (each.operation.request, each.answer, *each.about.other_answers)
        if struct
    ]
    schemas = components([*structs, wire.Problem, Callback, CallbackAnswer])
    _constrain(schemas, [struct for name, struct in request_structs().items() if name in schemas])
    paths: Json = {}
    for each in operations:
        shown = _operation(each)
        if parameters := _parameters(each):
            shown["parameters"] = parameters
        paths.setdefault(each.operation.path, {})[each.operation.method.lower()] = shown
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
        "tags": [{"name": tag} for tag in dict.fromkeys([*(each.tag for each in operations), "Callbacks"])],
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


def _parameters(each: Described) -> list[Json]:
    """Those of path and query, and the request's own headers."""
    found: list[Json] = []
    for name in _IN_PATH.findall(each.operation.path):
        text, example = PATH_PARAMETERS[name]
        text, schema = each.about.parameters.get(name, text), PARAMETERS[name]
        if name in each.about.parameters:
            schema = EVERY_OR_ID
        found.append(_parameter(name, "path", text, schema) | {"example": example})
    for name in each.operation.query:
        schema = PARAMETERS[name]
        if name in each.operation.repeated:
            schema = {"type": "array", "items": schema}
            if (values_max := PARAMETER_VALUES_MAX.get(name)) is not None:
                schema["maxItems"] = values_max
        found.append(_parameter(name, "query", each.about.parameters[name], schema))
    for name, text in each.about.request_headers.items():
        found.append(
            {"name": name, "in": "header", "required": False, "description": text, "schema": REQUEST_HEADERS[name]}
        )
    return found


def _parameter(name: str, place: str, text: str, schema: Json) -> Json:
    return {"name": name, "in": place, "description": text, "required": place == "path", "schema": schema}


def _operation(each: Described) -> Json:
    operation, about = each.operation, each.about
    is_open = operation.reach is Reach.OPEN
    shown: Json = {
        "operationId": operation.name,
        "summary": about.summary,
        "description": each.text,
        "tags": [each.tag],
        "security": [] if is_open else [{"bearer": []}, {}],
    }
    if operation.role is not None:
        shown["description"] += f" Requires a key of role {operation.role.value}{_where(operation.reach)}."
    if operation.request is not None:
        content: Json = {"schema": ref(operation.request)}
        if about.example:
            content["example"] = about.example
        shown["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": content},
        }
    if operation.any_body:
        shown["requestBody"] = {
            "required": False,
            # Of any type; generators of clients know this one.
            "content": {
                "application/octet-stream": {
                    "schema": {"type": "string", "format": "binary", "description": "What to keep, of any type."}
                }
            },
        }
    shown["responses"] = _responses(each, is_open)
    return shown


def _where(reach: Reach) -> str:
    return {
        Reach.SERVICE: " that is not limited to namespaces or tenants",
        Reach.TENANT: " for the tenant",
        Reach.NAMED_TENANT: " for the tenant",
    }.get(reach, "")


def _responses(each: Described, is_open: bool) -> Json:
    operation, about = each.operation, each.about
    own_headers = {
        name: {"description": text, "schema": {"type": "string"}} for name, text in about.answer_headers.items()
    }
    success: Json = {"description": "Success.", "headers": {**_HEADERS, **own_headers}}
    if each.answer is not None:
        schema = ref(each.answer)
        if about.other_answers:
            schema = {"anyOf": [schema, *(ref(other) for other in about.other_answers)]}
        content = {"schema": schema, "example": answer_example(each.answer)}
        success["content"] = {about.media_type: content}
    elif operation.status != _NO_CONTENT:
        success["content"] = {about.media_type: {"schema": {"type": "string"}}}
    responses = {str(operation.status): success}
    if about.has_etag:
        responses["304"] = {"description": "The answer named by `If-None-Match` is current.", "headers": _HEADERS}
    for status, codes in sorted(_errors(operation, about, is_open).items()):
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


def _errors(operation: Operation, about: About, is_open: bool) -> dict[int, list[str]]:
    """The operation's error codes, by status."""
    codes = [*about.errors, *_ALWAYS]
    if not is_open:
        codes += _WITH_KEY
    if operation.request is not None:
        codes += _WITH_BODY
    elif not operation.any_query:
        codes.append("INVALID_INPUT")
    if operation.request in _WITH_PAYLOAD:
        codes.append("PAYLOAD_TOO_LARGE")
    if operation.of_agent:
        codes.append("ROUTE_NOT_FOUND")
    found: dict[int, list[str]] = {}
    for code in codes:
        found.setdefault(kind_of_code(code).status, []).append(code)
    return found


def limit(schemas: Json, sent: list[type[msgspec.Struct]]) -> None:
    """Adds to the schemas what each of their fields accepts."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name in _INSTANTS:
                target(field)["format"] = "date-time"
            elif name in _INSTANT_LISTS:
                field["items"]["format"] = "date-time"
            elif name in _DURATIONS:
                target(field).update(DURATION_SCHEMA)
    for struct in sent:
        for name, constraint in {**constraints_of(struct), **OF_API.get(struct.__name__, {})}.items():
            _apply(schemas[struct.__name__]["properties"][name], constraint)


#: Exactly one of two rules of a schedule. In a form that validators understand and generators ignore: they make no class of a
#: choice of objects.
_ONE_RULE: Json = {
    "if": {"required": ["cron"]},
    "then": {"not": {"anyOf": [{"required": ["every"]}, {"required": ["anchor"]}]}},
    "else": {"required": ["every"], "not": {"required": ["timeZone"]}},
}
ONE_SCHEDULE: Json = {**_ONE_RULE, "not": {"required": ["payload", "body"]}}


#: Limits that order the timers of a key.
_ORDERED: Json = {"required": ["ordered"], "properties": {"ordered": {"const": True}}}


def _constrain(schemas: Json, sent: list[type[msgspec.Struct]]) -> None:
    """Adds to the schemas the limits, and which fields exclude one another."""
    limit(schemas, sent)
    # For generators of clients, which make an error class of each code.
    schemas["ErrorCode"]["x-tocsin-codes"] = {
        code: {"status": kind_of_code(code).status, "description": about.when} for code, about in CODES.items()
    }
    # Each request is described with one name of the id; the alias is accepted as well.
    for struct, described, other in (
        ("CreateTimer", "id", "timerId"),
        ("TimerName", "timerId", "id"),
        ("TimerHistory", "timerId", "id"),
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
    schemas["CreateTimer"]["allOf"] = [
        {
            "if": {"required": ["onConflict"], "properties": {"onConflict": {"const": "debounce"}}},
            "then": {"required": ["delay", "maxDelay"], "not": {"required": ["collect", "body"]}},
            "else": {"not": {"anyOf": [{"required": ["maxDelay"]}, {"required": ["collect"]}]}},
        }
    ]
    schemas["UpdateTimer"] |= {
        "minProperties": 3,
        "allOf": [{"not": {"required": ["executeAt", "delay"]}}, {"not": {"required": ["payload", "body"]}}],
    }
    schemas["CreateSchedule"] |= ONE_SCHEDULE
    schemas["PreviewSchedule"] |= {
        "if": {"required": ["scheduleId"]},
        "then": {
            "required": ["namespace"],
            "not": {"anyOf": [{"required": [name]} for name in ("cron", "timeZone", *_OF_RULE)]},
        },
        "else": _ONE_RULE,
    }
    schemas["UpdateSchedule"] |= {
        "minProperties": 3,
        "allOf": [{"not": {"required": ["cron", "every"]}}, {"not": {"required": ["payload", "body"]}}],
    }
    schemas["FlowLimits"] |= {
        "if": {"required": ["rate"]},
        "else": {"anyOf": [{"required": ["parallelism"]}, _ORDERED], "not": {"required": ["burst"]}},
        "allOf": [{"if": _ORDERED, "then": {"properties": {"parallelism": {"const": 1}}}}],
    }
    # Only the timers of each key are in an order.
    for struct, limits in (("PutFlow", "total"), ("CreateNamespace", "limits"), ("UpdateNamespace", "limits")):
        schemas[struct].setdefault("allOf", []).append(
            {"not": {"required": [limits], "properties": {limits: {**_ORDERED, "type": "object"}}}}
        )
    schemas["PutMonitor"] |= {
        "anyOf": [{"required": [name]} for name in ("cron", "every")],
        "not": {"required": ["cron", "every"]},
    }
    schemas["PutCalendar"]["anyOf"] = [
        {"required": [name], "properties": {name: {"minItems": 1}}} for name in ("dates", "ranges", "weekdays")
    ]
    schemas["PutFlow"] |= {
        "if": {"not": {"anyOf": [{"required": [name]} for name in ("perKey", "total", "callbackBatch")]}},
        "then": {"required": ["closeOnRetryAfter"], "properties": {"closeOnRetryAfter": {"const": True}}},
    }
    schemas["ChangeInbox"] |= {
        "minProperties": 1,
        "maxProperties": 1,
        "not": {"required": ["all"], "properties": {"all": {"const": False}}},
    }
    schemas["ChangeInbox"]["properties"]["ids"]["minItems"] = 1
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


def _apply(field: Json, constraint: Constraint) -> None:
    """Constrains the field. What concerns the field as a whole stays there, the rest goes to the part that isn't null."""
    inner = dict(constraint.schema)
    if "x-bytes-max" in inner:
        field["x-bytes-max"] = inner.pop("x-bytes-max")
    if constraint.settings:
        field["x-tocsin-settings"] = list(constraint.settings)
    if "$ref" in inner or inner.get("type") == "array":
        for name in ("type", "anyOf", "enum"):
            field.pop(name, None)
        field.update(inner)
    else:
        target(field).update(inner)
