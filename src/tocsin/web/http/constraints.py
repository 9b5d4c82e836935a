"""What the fields of requests accept: annotations of the wire structs, from which the checks of requests are made, and the
limits in the OpenAPI document.

A schema has the built-in limits; a check applies those in force, and its reason names the value's mend
(`tocsin.model.validation`). Texts that are converted, such as instants and durations, are checked where that is done
(`tocsin.web.http.convert`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET

from tocsin.model.access import EVERY
from tocsin.model.credential import NAME_CHARS_MAX, name_reason
from tocsin.model.debounce import COLLECT_MAX
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.flow import FLOW_KEY_CHARS_MAX, flow_key_reason
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.subjects import is_subject_url
from tocsin.model.validation import CONTENT_TYPE_CHARS_MAX, InputLimits, InputRules, new_text_reason, text_reason
from tocsin.service_calls.limits import AgentLimits

Json = dict[str, Any]
#: The reason why a value is refused, or None.
Check = Callable[[InputRules, Any], str | None]

LIMITS, AGENT_LIMITS = InputLimits(), AgentLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """`schema` is JSON Schema; `settings` are those that change its limits. `check` None: the value is checked where it is
    converted, or its type suffices."""

    schema: Mapping[str, Any]
    settings: tuple[str, ...] = ()
    check: Check | None = None


@cache
def _checks(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, Check], ...]:
    """The attribute, the path and the check of each field that has one: plain tuples, which each create unpacks."""
    found = constraints_of(struct)
    return tuple(
        (field.name, field.encode_name, constraint.check)
        for field in msgspec.structs.fields(struct)
        if (constraint := found.get(field.encode_name)) is not None and constraint.check is not None
    )


def bad_fields(sent: msgspec.Struct, rules: InputRules, namespace: str = "") -> list[FieldError]:
    """The fields whose value is refused, in their order. `namespace` is that of a part of a request."""
    errors = []
    for attribute, path, check in _checks(type(sent)):
        value = getattr(sent, attribute)
        if value is UNSET or value is None:
            continue
        reason = check(rules, value)
        if reason is None and check is InputRules.callback_url and is_subject_url(value):
            reason = rules.callback_url(value, namespace or namespace_of(sent))
        if reason is not None:
            errors.append(FieldError(path, reason))
    return errors


def refuse_bad_fields(sent: msgspec.Struct, rules: InputRules) -> None:
    """Raises InvalidInput if there are such fields."""
    if errors := bad_fields(sent, rules):
        raise InvalidInput(*errors)


def below(path: str, errors: Iterable[FieldError]) -> list[FieldError]:
    """The errors of a part of a request, whose path this is."""
    return [FieldError(f"{path}.{each.path}", each.reason) for each in errors]


def namespace_of(sent: msgspec.Struct) -> str:
    """The namespace that a request is about; empty if it names none."""
    named = getattr(sent, "namespace", None) or getattr(sent, "name", None)
    return named if isinstance(named, str) else ""


def constraints_of(struct: type[msgspec.Struct]) -> dict[str, Constraint]:
    """The constraints of a struct's fields, by their names in JSON."""
    hints = get_type_hints(struct, include_extras=True)
    found = {field.encode_name: _constraint_in(hints[field.name]) for field in msgspec.structs.fields(struct)}
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def _constraint_in(hint: Any) -> Constraint | None:
    """The outermost one in a type, which may be a union with UnsetType and None."""
    if get_origin(hint) is Annotated:
        for each in hint.__metadata__:
            if isinstance(each, Constraint):
                return each
        return _constraint_in(hint.__origin__)
    if get_origin(hint) in (list, dict):
        return None
    return next((found for part in get_args(hint) if (found := _constraint_in(part)) is not None), None)


NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BASE64 = "[A-Za-z0-9+/]"


def text_schema(chars_max: int) -> Json:
    """The schema of 1 to `chars_max` characters, none of them a control character."""
    return {"minLength": 1, "maxLength": chars_max, "pattern": NO_CONTROL}


def text(chars_max: int) -> Constraint:
    """A text of 1 to `chars_max` characters, none of them a control character."""
    return Constraint(text_schema(chars_max), (), lambda _, value: text_reason(value, chars_max))


def new_text(chars_max: int) -> Constraint:
    """The same of a text that is stored: without invisible characters, too."""
    return Constraint(text_schema(chars_max), (), lambda _, value: new_text_reason(value, chars_max))


def between(low: int, high: int) -> Constraint:
    """A whole number of a range."""

    def check(_: InputRules, value: int) -> str | None:
        return None if low <= value <= high else f"is out of range; give {low} to {high}"

    return Constraint({"minimum": low, "maximum": high}, (), check)


def unique(items_max: int, item: Mapping[str, Any]) -> Constraint:
    """A list of texts without duplicates."""
    return Constraint({"maxItems": items_max, "uniqueItems": True, "items": {"type": "string", **item}})


def one_or_more(enum: str) -> Constraint:
    """Values of an enum; a single one is accepted in place of the array, too."""
    return Constraint({"type": "array", "items": component(enum)})


def component(name: str) -> Json:
    """The schema of an enum of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


_INSTANT: Json = {
    "format": "date-time",
    "pattern": r"^[0-9]{4}(-[0-9]{2}){2}[Tt][0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
}
DURATION_SCHEMA: Json = {"pattern": r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"}
INSTANT = Constraint(_INSTANT)
DURATION = Constraint(DURATION_SCHEMA)
EXECUTE_AT = Constraint(_INSTANT, ("execute_past_max", "execute_ahead_max"))
COLLECT = between(1, COLLECT_MAX)
AHEAD = Constraint(DURATION_SCHEMA, ("execute_ahead_max",))
INTERVAL = Constraint(DURATION_SCHEMA, ("retry_duration_max",))
RETENTION = Constraint(DURATION_SCHEMA, ("retention_max",))
#: Either case is accepted; the canonical form is lower case.
_UUID7 = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}"
UUID7 = Constraint({"pattern": rf"^{_UUID7}$"})


def _tenant_reason(_: InputRules, value: str) -> str | None:
    return (
        None if is_uuid7(value.lower()) else "is not a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057"
    )


TENANT = Constraint(UUID7.schema, (), _tenant_reason)
TENANT_OR_EVERY = Constraint(
    {"pattern": rf"^(\*|{_UUID7})$"}, (), lambda rules, value: None if value == EVERY else _tenant_reason(rules, value)
)
NAME = Constraint({"minLength": 1, "maxLength": 255, "pattern": r"^[A-Za-z0-9._:-]+$"}, (), InputRules.namespace)
NAME_OR_EVERY = Constraint(
    {"minLength": 1, "maxLength": 255, "pattern": r"^(\*|[A-Za-z0-9._:-]+)$"},
    (),
    lambda rules, value: None if value == EVERY else rules.namespace(value),
)
ID = Constraint(text_schema(LIMITS.id_chars_max), (), InputRules.timer_id)
NEW_ID = Constraint(text_schema(LIMITS.id_chars_max), (), InputRules.new_timer_id)
ID_PREFIX = Constraint(
    {"maxLength": LIMITS.id_chars_max, "pattern": NO_CONTROL},
    (),
    lambda rules, value: rules.timer_id(value) if value else None,
)
#: Characters of a text that a filter looks for within others.
PART_CHARS_MAX = 255
PART = text(PART_CHARS_MAX)
#: Characters of an idempotency key: more than a UUID, or the name of an operation, needs.
IDEMPOTENCY_KEY_CHARS_MAX = 255
IDEMPOTENCY_KEY = Constraint(
    {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]*$"}
)
_URL = {"format": "uri", "maxLength": LIMITS.url_chars_max, "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://"}
_TARGET = _URL | {"pattern": r"^([Hh][Tt][Tt][Pp][Ss]?|[Nn][Aa][Tt][Ss])://"}
CALLBACK_URL = Constraint(_TARGET, (), InputRules.callback_url)
CALL_URL = Constraint(_URL)
METHOD = Constraint(component("CallbackMethod"), (), InputRules.method)
PAYLOAD = Constraint({"x-bytes-max": LIMITS.payload_bytes_max}, ("payload_bytes_max", "payload_depth_max"))
FLOW = Constraint(
    {"minLength": 1, "maxLength": FLOW_KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]*[\u0021-\u0039\u003b-\u007e]$"},
    (),
    lambda _, key: flow_key_reason(key),
)
CREDENTIAL = Constraint(
    {"minLength": 1, "maxLength": NAME_CHARS_MAX, "pattern": "^[A-Za-z0-9._-]+$"},
    (),
    lambda _, name: name_reason(name),
)
HEADERS = Constraint(
    {
        "maxProperties": LIMITS.headers_max,
        "propertyNames": {"maxLength": LIMITS.header_name_chars_max, "pattern": f"^{_TOKEN}$"},
        "additionalProperties": {
            "type": "string",
            "maxLength": LIMITS.header_value_chars_max,
            "pattern": r"^[\t\u0020-\u007e]*$",
        },
    }
)
CALL_HEADERS = Constraint(
    {
        "propertyNames": {"pattern": f"^{_TOKEN}$"},
        "additionalProperties": {
            "type": "string",
            "pattern": r"^([\u0021-\u007e]([\t\u0020-\u007e]*[\u0021-\u007e])?)?$",
        },
    }
)
TIMEOUT = Constraint(
    {
        "minimum": LIMITS.callback_timeout_min_us / US_PER_SECOND,
        "maximum": LIMITS.callback_timeout_max_us / US_PER_SECOND,
    },
    ("callback_timeout_max",),
    lambda rules, seconds: rules.callback_timeout(seconds * US_PER_SECOND),
)
TAGS = unique(LIMITS.tags_max, text_schema(LIMITS.tag_chars_max))
CALL_TAGS = unique(AGENT_LIMITS.tags_max, text_schema(AGENT_LIMITS.tag_chars_max))
ATTEMPTS = Constraint({"minimum": 1, "maximum": LIMITS.attempts_max}, ("attempts_max",))
MULTIPLIER = Constraint({"minimum": 1, "maximum": LIMITS.backoff_multiplier_max})
BODY_TEXT = Constraint({"maxLength": LIMITS.payload_bytes_max})
BODY_BASE64 = Constraint(
    {
        "contentEncoding": "base64",
        "pattern": f"^({_BASE64}{{4}})*({_BASE64}{{2}}==|{_BASE64}{{3}}=)?$",
        "maxLength": (LIMITS.payload_bytes_max + 2) // 3 * 4,
    }
)
CONTENT_TYPE = Constraint(
    {
        "maxLength": CONTENT_TYPE_CHARS_MAX,
        "pattern": rf"^{_TOKEN}/{_TOKEN}( *; *[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?)?$",
    }
)
CALL_BODY = Constraint({"x-bytes-max": AGENT_LIMITS.request_body_bytes_max}, ("agent.request_body_bytes_max",))
#: Rows of a page, for a request without a limit.
ROWS_DEFAULT = 100
ROWS = Constraint({"minimum": 1, "maximum": LIMITS.list_rows_max}, ("list_rows_max",), InputRules.list_limit)
CURSOR = Constraint(text_schema(LIMITS.cursor_chars_max), (), InputRules.cursor)
NUM_SHARDS = Constraint({"minimum": 1, "maximum": LIMITS.num_shards_max}, (), InputRules.num_shards)
#: The base64 of 24 to 64 bytes: whole groups of four characters, of which the last may be padded.
SECRET = Constraint(
    {
        "minLength": 38,
        "maxLength": 94,
        "pattern": f"^whsec_(?:(?:{_BASE64}{{4}}){{8,20}}(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?"
        f"|(?:{_BASE64}{{4}}){{21}}(?:{_BASE64}{{2}}==)?)$",
    },
    (),
    InputRules.secret,
)
