"""The `webhooks` of the OpenAPI document: the request to a callback URL, and its responses."""

from __future__ import annotations

from typing import Any

from scripts.openapi.callback_wire import Callback, CallbackAnswer

Json = dict[str, Any]

_REPEATED = "The attempt failed and is retried by the retry policy; `Retry-After` delays the retry."


def webhooks(schemas: Json) -> Json:
    """The only webhook: a timer fires. Its schemas are inlined, not only in `schemas`: oapi-codegen drops components that no
    path refers to, and then fails to find them."""
    envelope, answer = (schemas[struct.__name__] for struct in (Callback, CallbackAnswer))
    return {
        "timerFired": {
            "post": {
                "operationId": "timerFired",
                "summary": "A timer fires",
                "description": "Sent to the timer's `callbackUrl` with its `method` and `headers`, at least once for each "
                "firing: the receiver recognizes a repeated request by `webhook-id`. GET and HEAD have no body. Redirects "
                "are "
                "not followed. The signature follows Standard Webhooks: base64 of the HMAC-SHA256 of "
                "`{webhook-id}.{webhook-timestamp}.{body}` under the bytes of the namespace's secret.",
                "tags": ["Callbacks"],
                "security": [],
                "parameters": _HEADERS,
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": envelope, "example": _EXAMPLE}},
                },
                "responses": {"2XX": _success(answer), **_FAILURES},
            }
        }
    }


def _header(name: str, description: str, example: str, *, required: bool) -> Json:
    return {
        "name": name,
        "in": "header",
        "description": description,
        "required": required,
        "schema": {"type": "string"},
        "example": example,
    }


_HEADERS = [
    _header(
        "webhook-id",
        "The same for all attempts of one firing, another for each firing.",
        "msg_3c2a9a3e6f0a5a3b9d550f5f6d1c2b7e_1",
        required=True,
    ),
    _header("webhook-timestamp", "When this attempt started, in seconds since 1970.", "1801396800", required=True),
    _header(
        "webhook-signature",
        "Signatures separated by spaces, one for each valid secret; absent if the namespace has no secret.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        required=False,
    ),
    _header(
        "traceparent",
        "As sent with the request that created the timer.",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        required=False,
    ),
]

_EXAMPLE = {
    "namespace": "default",
    "timerId": "order-17-reminder",
    "executeAt": "2027-01-31T12:00:00Z",
    "firedAt": "2027-01-31T12:00:00.001873Z",
    "attempt": 1,
    "payload": {"order": 17},
}

_FAILURES: Json = {
    "3XX": {"description": _REPEATED},
    "408": {"description": _REPEATED},
    "425": {"description": _REPEATED},
    "429": {"description": _REPEATED},
    "4XX": {
        "description": "Final: the timer has failed and is not retried, except after a 401 to a token that may have been "
        "revoked: the next attempt has another token."
    },
    "5XX": {"description": _REPEATED},
}


def _success(answer: Json) -> Json:
    return {
        "description": "The timer has completed, whatever the body, unless it is a JSON object with `ok: false` (the attempt "
        "failed and is retried) or with `nextExecuteAt` (the timer fires again at that instant). In a namespace with "
        '`answers: "strict"`, only an empty body, `{"ok": true}` and these two are accepted.',
        "content": {
            "application/json": {
                "schema": answer,
                "examples": {
                    "done": {"value": {"ok": True}},
                    "failed": {"value": {"ok": False}},
                    "rescheduled": {
                        "value": {"nextExecuteAt": "2027-02-01T12:00:00Z", "payload": {"order": 17, "reminder": 2}}
                    },
                },
            }
        },
    }
