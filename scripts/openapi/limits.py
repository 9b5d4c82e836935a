"""The limits in the OpenAPI document: what `tocsin.model.validation` and the service agent check, with built-in settings."""

from __future__ import annotations

from typing import Any

from tocsin.keys import NAME_CHARS_MAX, SCOPE_MAX
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.recurrence import EXPRESSION_CHARS_MAX
from tocsin.model.schedule import OCCURRENCES_MAX
from tocsin.model.secrets import GRACE_US_MAX
from tocsin.model.validation import CONTENT_TYPE_CHARS_MAX, InputLimits
from tocsin.service_calls.api.validation import CORRELATION_ID_CHARS_MAX
from tocsin.service_calls.limits import AgentLimits
from tocsin.web.api.request import ApiLimits
from tocsin.web.http.audit import CURSOR_CHARS, FILTER_CHARS_MAX
from tocsin.web.http.repeated import KEY_CHARS_MAX
from tocsin.web.http.schedules import PREVIEW_MAX

Json = dict[str, Any]

_LIMITS, _API, _AGENT = InputLimits(), ApiLimits(), AgentLimits()

INSTANT = {
    "format": "date-time",
    "pattern": r"^[0-9]{4}(-[0-9]{2}){2}[Tt][0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
}
DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"}
IDEMPOTENCY_KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]*$"}
#: Either case is accepted; the canonical form is lower case.
_UUID7 = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"
_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = rf"^{_TOKEN}/{_TOKEN}( *; *[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?)?$"
_NAME = {"minLength": 1, "maxLength": 255, "pattern": r"^[A-Za-z0-9._:-]+$"}
_BASE64 = "[A-Za-z0-9+/]"
#: The base64 of 24 to 64 bytes: whole groups of four characters, of which the last may be padded.
_SECRET = {
    "minLength": 38,
    "maxLength": 94,
    "pattern": f"^whsec_(?:(?:{_BASE64}{{4}}){{8,20}}(?:{_BASE64}{{2}}==|{_BASE64}{{3}}=)?"
    f"|(?:{_BASE64}{{4}}){{21}}(?:{_BASE64}{{2}}==)?)$",
}


def _text(chars_max: int) -> Json:
    return {"minLength": 1, "maxLength": chars_max, "pattern": _NO_CONTROL}


def _set(items_max: int, item: Json) -> Json:
    return {"maxItems": items_max, "uniqueItems": True, "items": {"type": "string", **item}}


def _by_settings(*names: str) -> Json:
    """Marks a limit as changeable by these settings."""
    return {"x-tocsin-settings": list(names)}


_ID = _text(_LIMITS.id_chars_max)
_URL = {"format": "uri", "maxLength": _LIMITS.url_chars_max, "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://"}
_FILTER = _text(FILTER_CHARS_MAX)
_ROWS = {"minimum": 1, "maximum": _LIMITS.list_rows_max, **_by_settings("list_rows_max")}
_CURSOR = {"minLength": 1, "maxLength": _LIMITS.cursor_chars_max}
_INTERVAL = {**DURATION, **_by_settings("retry_duration_max")}
_RETENTION = {
    **DURATION,
    "description": f"How long finished timers stay visible; at most {format_duration(_LIMITS.retention_max_us)}.",
    **_by_settings("retention_max"),
}
_TAGS = _set(_LIMITS.tags_max, _text(_LIMITS.tag_chars_max))
_CALL_TAG = _text(_AGENT.tag_chars_max)
#: The fields that creating and updating a timer share.
_TIMER: dict[str, Json] = {
    "namespace": _NAME,
    "callbackUrl": _URL,
    "executeAt": {**INSTANT, **_by_settings("execute_past_max", "execute_ahead_max")},
    "delay": {**DURATION, **_by_settings("execute_ahead_max")},
    "payload": {
        "description": f"Any JSON, delivered exactly as sent; at most {_LIMITS.payload_bytes_max} bytes, and "
        f"{_LIMITS.payload_depth_max} levels of nested arrays and objects. With GET and HEAD, which send none, only null.",
        "x-bytes-max": _LIMITS.payload_bytes_max,
        **_by_settings("payload_bytes_max", "payload_depth_max"),
    },
    "method": {"$ref": "#/components/schemas/CallbackMethod"},
    "headers": {
        "maxProperties": _LIMITS.headers_max,
        "propertyNames": {"maxLength": _LIMITS.header_name_chars_max, "pattern": f"^{_TOKEN}$"},
        "additionalProperties": {
            "type": "string",
            "maxLength": _LIMITS.header_value_chars_max,
            "pattern": r"^[\t\u0020-\u007e]*$",
        },
    },
    "callbackTimeoutSeconds": {
        "description": "Timeout of one attempt, in seconds. Default 10.",
        "minimum": _LIMITS.callback_timeout_min_us / US_PER_SECOND,
        "maximum": _LIMITS.callback_timeout_max_us / US_PER_SECOND,
        **_by_settings("callback_timeout_max"),
    },
    "tags": _TAGS,
    "expireAfter": {**DURATION, **_by_settings("execute_ahead_max")},
}
#: The fields of a timer that a schedule has as well.
_CALL = {name: limits for name, limits in _TIMER.items() if name not in ("executeAt", "delay")}
_DEFINITION: dict[str, Json] = {
    "cron": {"minLength": 1, "maxLength": EXPRESSION_CHARS_MAX},
    "timeZone": {"minLength": 1, "maxLength": 64},
    "every": DURATION,
    "anchor": INSTANT,
    "startAt": INSTANT,
    "endAt": INSTANT,
    "maxOccurrences": {"minimum": 1, "maximum": OCCURRENCES_MAX},
    "jitter": DURATION,
    "catchUp": {"$ref": "#/components/schemas/CatchUp"},
    "catchUpWindow": DURATION,
    "pauseAfterFailures": {"minimum": 0, "maximum": 1_000_000},
}
_ROTATION: dict[str, Json] = {
    "secret": _SECRET,
    "grace": {
        **DURATION,
        "description": "How long the previous secret keeps signing: at most "
        f"{format_duration(GRACE_US_MAX)}; 0s: not at all. Default 24h.",
    },
}

#: The limits of request fields, by schema and field.
FIELDS: dict[str, dict[str, Json]] = {
    "CreateTimer": {"id": _ID, "idempotencyKey": IDEMPOTENCY_KEY, **_TIMER},
    "TimerName": {"namespace": _NAME, "timerId": _ID},
    "UpdateTimer": {"timerId": _ID, **_TIMER},
    "RetryPolicy": {
        "maxAttempts": {"minimum": 1, "maximum": _LIMITS.attempts_max, **_by_settings("attempts_max")},
        "maxAttemptsDuration": _INTERVAL,
        "initialInterval": _INTERVAL,
        "backoffMultiplier": {"minimum": 1, "maximum": _LIMITS.backoff_multiplier_max},
        "maxInterval": _INTERVAL,
    },
    "RawBody": {
        "json": {"description": f"Any JSON, sent byte for byte as written; at most {_LIMITS.payload_bytes_max} bytes."},
        "text": {"maxLength": _LIMITS.payload_bytes_max},
        "base64": {
            "contentEncoding": "base64",
            "pattern": f"^({_BASE64}{{4}})*({_BASE64}{{2}}==|{_BASE64}{{3}}=)?$",
            "maxLength": (_LIMITS.payload_bytes_max + 2) // 3 * 4,
        },
        "contentType": {"maxLength": CONTENT_TYPE_CHARS_MAX, "pattern": _MEDIA_TYPE},
    },
    "ListAudit": {
        "action": {"type": "array", "items": {"$ref": "#/components/schemas/AuditAction"}},
        "keyId": _FILTER,
        "subject": _FILTER,
        "after": INSTANT,
        "before": INSTANT,
        "limit": _ROWS,
        "cursor": {"pattern": f"^[A-Za-z0-9_-]{{{CURSOR_CHARS}}}$"},
    },
    "TimerHistory": {"namespace": _NAME, "timerId": _ID, "limit": _ROWS, "cursor": {**_CURSOR, "pattern": _NO_CONTROL}},
    "ListTimers": {
        "namespace": _NAME,
        "status": {"type": "array", "items": {"$ref": "#/components/schemas/TimerStatus"}},
        "tags": _TAGS,
        "idPrefix": {"maxLength": _LIMITS.id_chars_max, "pattern": _NO_CONTROL},
        "executeAfter": INSTANT,
        "executeBefore": INSTANT,
        "limit": _ROWS,
        "cursor": {**_CURSOR, "pattern": _NO_CONTROL},
    },
    "CreateSchedule": {"id": _ID, **_CALL, **_DEFINITION},
    "UpdateSchedule": {"scheduleId": _ID, **_CALL, **_DEFINITION},
    "ScheduleName": {"namespace": _NAME, "scheduleId": _ID},
    "ScheduleHistory": {
        "namespace": _NAME,
        "scheduleId": _ID,
        "limit": _ROWS,
        "cursor": {**_CURSOR, "pattern": _NO_CONTROL},
    },
    "BackfillSchedule": {"namespace": _NAME, "scheduleId": _ID, "after": INSTANT, "before": INSTANT},
    "PreviewSchedule": {
        "namespace": _NAME,
        "scheduleId": _ID,
        **{name: _DEFINITION[name] for name in ("cron", "timeZone", "every", "anchor", "startAt", "endAt")},
        "count": {"minimum": 1, "maximum": PREVIEW_MAX},
    },
    "ListSchedules": {
        "namespace": _NAME,
        "limit": _ROWS,
        "cursor": {**_CURSOR, "pattern": _NO_CONTROL},
    },
    "BatchCreateTimers": {"timers": {"maxItems": _API.batch_items_max, **_by_settings("api.batch_items_max")}},
    "CreateNamespace": {
        "name": _NAME,
        "numShards": {"minimum": 1, "maximum": _LIMITS.num_shards_max},
        "retention": _RETENTION,
        "secret": _SECRET,
    },
    "RotateSecret": {"name": _NAME, **_ROTATION},
    "RotateTenantSecret": {"tenantId": {"pattern": _UUID7}, **_ROTATION},
    "CreateKey": {
        "name": {"maxLength": NAME_CHARS_MAX, "pattern": _NO_CONTROL},
        "namespaces": _set(SCOPE_MAX, _NAME),
        "tenants": _set(SCOPE_MAX, {"pattern": _UUID7}),
        "expiresAt": INSTANT,
    },
    "RevokeKey": {"keyId": _FILTER},
    "UpdateNamespace": {"name": _NAME, "retention": _RETENTION, "secret": _SECRET},
    "SubmitServiceCall": {
        "name": _text(_AGENT.name_chars_max),
        "dueAt": INSTANT,
        "delay": DURATION,
        "tags": _set(_AGENT.tags_max, _CALL_TAG),
        "serviceCallId": {"format": "uuid", "pattern": _UUID7},
        "idempotencyKey": _text(_AGENT.idempotency_key_chars_max),
    },
    "RequestSpec": {
        "url": _URL,
        "method": {"$ref": "#/components/schemas/ServiceCallMethod"},
        "headers": {
            "propertyNames": {"pattern": f"^{_TOKEN}$"},
            "additionalProperties": {
                "type": "string",
                "pattern": r"^([\u0021-\u007e]([\t\u0020-\u007e]*[\u0021-\u007e])?)?$",
            },
        },
        "body": {
            "description": "Any JSON: a string is sent as plain text, any other value as JSON. At most "
            f"{_AGENT.request_body_bytes_max} bytes. Not with GET and HEAD.",
            "x-bytes-max": _AGENT.request_body_bytes_max,
            **_by_settings("agent.request_body_bytes_max"),
        },
    },
}

#: The schemas of parameters of paths and queries, by name; of a parameter that may be repeated, one value's.
PARAMETERS: dict[str, Json] = {
    "tenantId": {"type": "string", "format": "uuid", "pattern": _UUID7},
    "serviceCallId": {"type": "string", "format": "uuid", "pattern": _UUID7},
    "tag": {"type": "string", **_CALL_TAG},
    "name": {"type": "string", **_text(_AGENT.name_chars_max)},
    "correlationId": {"type": "string", **_text(CORRELATION_ID_CHARS_MAX)},
    "status": {"$ref": "#/components/schemas/ServiceCallStatus"},
    "from": {"type": "string", "format": "date-time"},
    "to": {"type": "string", "format": "date-time"},
    "limit": {"type": "integer", "minimum": 1, "maximum": _AGENT.page_max},
    "cursor": {"type": "string", **_CURSOR},
    "view": {"type": "string", "enum": ["owners"]},
}
#: The schemas of request headers, by name.
REQUEST_HEADERS: dict[str, Json] = {
    "idempotency-key": IDEMPOTENCY_KEY,
    "tocsin-first-try": {"type": "string", "enum": ["1"]},
    "if-none-match": {"type": "string"},
}
#: The maximum number of values of a parameter, where it is limited.
PARAMETER_VALUES_MAX = {"tag": _AGENT.tags_max}
