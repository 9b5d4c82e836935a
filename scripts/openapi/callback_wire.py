"""The callback request to a timer's URL and the response to it, for the OpenAPI document. `tocsin.http_client.request` writes
the request and `tocsin.model.answer` reads the response; `docs/reference/callbacks.md` describes both."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.web.http.wire import Instant, NamespaceName, ResponseStruct, TimerId, about


class Callback(ResponseStruct):
    """What a callback URL receives when its timer fires."""

    namespace: NamespaceName
    timer_id: TimerId
    execute_at: Annotated[Instant, about("When the timer was due.")]
    fired_at: Annotated[Instant, about("When this attempt began.")]
    attempt: Annotated[int, Meta(description="1 for the first attempt of this firing.", ge=1)]
    payload: Annotated[msgspec.Raw, about("The timer's payload, as it was created; null without one.")]


class CallbackAnswer(msgspec.Struct, rename="camel"):
    """The body of a 2xx response, which is optional: any other body, or none, means done."""

    ok: Annotated[bool | UnsetType, about("False: the attempt failed, and is repeated by the retry policy.")] = UNSET
    next_execute_at: Annotated[
        str | UnsetType,
        about("Reschedules the timer to this instant; its attempts start over.", "2027-01-31T12:00:00Z"),
    ] = UNSET
    payload: Annotated[
        msgspec.Raw | UnsetType, about("With `nextExecuteAt`: the timer's new payload. Absent: unchanged.")
    ] = UNSET
