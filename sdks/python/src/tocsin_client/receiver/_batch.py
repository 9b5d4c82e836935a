"""Several callbacks in one request, and their answers in one response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._firing import Firing

_PREFIX = "batch_"
_JSON = "application/json"


@dataclass(frozen=True)
class Batch:
    """A verified request of a namespace or a flow with `callbackBatch`: the firings of several timers, each with its own
    `webhook_id`. What its `body` has is that part of the request."""

    firings: tuple[Firing, ...]

    @classmethod
    def is_one(cls, headers: Mapping[str, str]) -> bool:
        """Whether the request is a batch, by its `webhook-id`, which is signed."""
        return headers.get("webhook-id", "").startswith(_PREFIX)

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Batch:
        """Reads a verified request. ValueError: it is no batch of callbacks."""
        try:
            items = json.loads(body)["items"]
            return cls(tuple(Firing.of_item(headers, item) for item in items))
        except (KeyError, TypeError, AttributeError, RecursionError) as wrong:
            raise ValueError("the body is no batch of callbacks") from wrong

    def response(self, answers: Sequence[Answer]) -> Answer:
        """The response with one answer for each of the firings, in their order."""
        results = (_result(firing, answer) for firing, answer in zip(self.firings, answers, strict=True))
        return Answer(200, {"content-type": _JSON}, b'{"items":[%b]}' % b",".join(results))


def _result(firing: Firing, answer: Answer) -> bytes:
    """The status, the wait, and the members of the body."""
    head = f'"webhookId":{json.dumps(firing.webhook_id)},"status":{answer.status}'
    if "retry-after" in answer.headers:
        head += f',"retryAfter":{int(answer.headers["retry-after"])}'
    body = answer.body.strip()[1:-1] if answer.headers.get("content-type") == _JSON else b""
    return b"{%b%b}" % (head.encode(), b"," + body if body else b"")
