"""A callback as the handler sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from tocsin_client._core.ids import schedule_uuid, timer_uuid
from tocsin_client._values import parse_instant

_WEBHOOK_ID = re.compile(r"msg_([0-9a-f]{32})_", re.ASCII)
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True)
class Firing:
    """One attempt to fire a timer, or an occurrence of a schedule. Namespace and id are proven by the signature, since
    `webhook_id` is made from them; so is everything in the envelope.

    Beside a raw `body` of the timer, only the instant of the request is proven: both instants are this one, and the attempt
    is 0. A timer with `method="GET"` or `"HEAD"` sends no body: without a raw `body`, namespace and id are empty, too.
    """

    #: The same for all attempts of one firing: use it to recognise repetitions.
    webhook_id: str
    namespace: str
    #: The timer's or the schedule's id.
    timer_id: str
    #: When it was due.
    execute_at: datetime
    #: When this attempt began.
    fired_at: datetime
    #: Counts from 1; 0 if it is not known.
    attempt: int
    #: The timer's payload; None for a raw body, which is in `body`.
    payload: Any
    #: The request's body, as it arrived; of a batch, this timer's part of it.
    body: bytes
    #: The request's headers; their names are in lower case.
    headers: Mapping[str, str]

    @property
    def traceparent(self) -> str | None:
        """W3C Trace Context of the program that created the timer."""
        return self.headers.get("traceparent")

    @classmethod
    def of_item(cls, headers: Mapping[str, str], webhook_id: str, body: bytes) -> Firing:
        """Reads one callback of a verified batch. ValueError: it is not the one that its `webhookId` names."""
        own = {"webhook-id": webhook_id}
        envelope = _envelope_of(body)
        if envelope is None or not _is_of(webhook_id, envelope["namespace"], envelope["timerId"]):
            raise ValueError("a callback of the batch is not of the timer that its webhookId names")
        if isinstance(envelope.get("traceparent"), str):
            own["traceparent"] = envelope["traceparent"]
        return cls._of(envelope, webhook_id, body, {**headers, **own})

    @classmethod
    def _of(cls, envelope: dict[str, Any], webhook_id: str, body: bytes, headers: Mapping[str, str]) -> Firing:
        return cls(
            webhook_id,
            envelope["namespace"],
            envelope["timerId"],
            parse_instant(envelope["executeAt"]),
            parse_instant(envelope["firedAt"]),
            envelope["attempt"],
            envelope["payload"],
            body,
            headers,
        )

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Firing:
        """Reads a verified request. ValueError: it is not the callback that its `webhook-id` names."""
        webhook_id = headers.get("webhook-id", "")
        envelope = _envelope_of(body)
        if envelope is not None and _is_of(webhook_id, envelope["namespace"], envelope["timerId"]):
            return cls._of(envelope, webhook_id, body, headers)
        namespace, timer_id = headers.get("tocsin-namespace", ""), headers.get("tocsin-timer-id", "")
        if namespace or timer_id or body:
            timer_id = unquote(timer_id, errors="strict")
            if not _is_of(webhook_id, namespace, timer_id):
                raise ValueError("neither the body nor the headers are of the timer that the webhook-id names")
        sent_at = _instant_of(headers.get("webhook-timestamp", ""))
        return cls(webhook_id, namespace, timer_id, sent_at, sent_at, 0, None, body, headers)


def is_timestamp(text: str) -> bool:
    """Whether it is written as the header `webhook-timestamp`: seconds since 1970."""
    return _TIMESTAMP.fullmatch(text) is not None


def _instant_of(timestamp: str) -> datetime:
    if not is_timestamp(timestamp):
        raise ValueError("the request's timestamp is not a number")
    return datetime.fromtimestamp(int(timestamp), timezone.utc)


def _envelope_of(body: bytes) -> dict[str, Any] | None:
    """The body's object, if it has all members of an envelope."""
    try:
        return _envelope(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _envelope(envelope: Any) -> dict[str, Any] | None:
    try:
        if isinstance(envelope, dict) and "payload" in envelope and type(envelope["attempt"]) is int:
            parse_instant(envelope["executeAt"])
            parse_instant(envelope["firedAt"])
            if isinstance(envelope["namespace"], str) and isinstance(envelope["timerId"], str):
                return envelope
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        pass
    return None


def _is_of(webhook_id: str, namespace: str, timer_id: str) -> bool:
    """Whether the `webhook-id`, which is signed, is one of this timer or schedule."""
    found = _WEBHOOK_ID.match(webhook_id)
    if "\0" in namespace + timer_id:  # no name has it, and it separates them in what the UUID is made of
        return False
    try:
        return found is not None and found[1] in (
            timer_uuid(namespace, timer_id).hex,
            schedule_uuid(namespace, timer_id).hex,
        )
    except UnicodeEncodeError:  # a lone surrogate, which no name has
        return False
