"""A callback as the handler sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from tocsin_client._values import parse_instant


@dataclass(frozen=True)
class Firing:
    """One attempt to fire a timer, or an occurrence of a schedule.

    A timer with `method="GET"` or `"HEAD"` sends no body: without a raw `body` of the timer, namespace and id are empty, the
    attempt is 0, and both instants are that of the request.
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
    #: Counts from 1.
    attempt: int
    #: The timer's payload; None for a raw body, which is in `body`.
    payload: Any
    #: The request's body, as it arrived.
    body: bytes
    #: The request's headers; their names are in lower case.
    headers: Mapping[str, str]

    @property
    def traceparent(self) -> str | None:
        """W3C Trace Context of the program that created the timer."""
        return self.headers.get("traceparent")

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Firing:
        """Reads a verified request. ValueError: it is no callback of Tocsin."""
        webhook_id = headers.get("webhook-id", "")
        if "tocsin-timer-id" in headers:
            return cls(
                webhook_id,
                headers.get("tocsin-namespace", ""),
                unquote(headers["tocsin-timer-id"]),
                parse_instant(headers.get("tocsin-execute-at", "")),
                parse_instant(headers.get("tocsin-fired-at", "")),
                int(headers.get("tocsin-attempt", "")),
                None,
                body,
                headers,
            )
        if not body:
            sent_at = datetime.fromtimestamp(int(headers.get("webhook-timestamp", "")), timezone.utc)
            return cls(webhook_id, "", "", sent_at, sent_at, 0, None, body, headers)
        try:
            envelope = json.loads(body)
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
        except (KeyError, TypeError, RecursionError) as wrong:
            raise ValueError(f"the body is not a callback of Tocsin: {wrong!r}") from wrong
