"""Several callbacks in one request, and their answers in one response."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._firing import Firing

_log = logging.getLogger("tocsin_client")

_PREFIX = "batch_"
_JSON = "application/json"
#: What shows the structure of a JSON text. A string without an end reaches to that of the text: reading takes linear time.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True)
class Batch:
    """A verified request of a namespace or a flow with `callbackBatch`: the firings of several timers, each with its own
    `webhook_id`. What its `body` has is that part of the request."""

    firings: tuple[Firing, ...]
    #: The `webhook_id` of each callback that can't be read, such as one with a number that is too long for Python: it is
    #: answered 503, and the others are answered by their handlers.
    unreadable: tuple[str, ...] = ()

    @classmethod
    def is_one(cls, headers: Mapping[str, str]) -> bool:
        """Whether the request is a batch, by its `webhook-id`, which is signed."""
        return headers.get("webhook-id", "").startswith(_PREFIX)

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Batch:
        """Reads a verified request. ValueError: it is no batch of callbacks."""
        firings: list[Firing] = []
        unreadable: list[str] = []
        for item in _items(body):
            webhook_id = _webhook_id(item)
            try:
                firings.append(Firing.of_item(headers, webhook_id, item))
            except (ValueError, OverflowError) as wrong:
                _log.warning("callback of a batch refused: %s", wrong, extra={"webhook_id": webhook_id})
                if webhook_id:  # without one there is nothing to answer; the server calls again for it, too
                    unreadable.append(webhook_id)
        return cls(tuple(firings), tuple(unreadable))

    def response(self, answers: Sequence[Answer]) -> Answer:
        """The response with one answer for each of the firings, in their order."""
        results = [_result(firing.webhook_id, answer) for firing, answer in zip(self.firings, answers, strict=True)]
        results += [_result(webhook_id, Answer(503)) for webhook_id in self.unreadable]
        return Answer(200, {"content-type": _JSON}, b'{"items":[%b]}' % b",".join(results))


def _items(body: bytes) -> Iterator[bytes]:
    """The JSON texts of the batch's items. They are separated without being read, so that one that can't be read takes no
    other along. ValueError, after the last: there is no such list."""
    depth, member, within, found, begin = 0, b"", False, False, 0
    for token in _TOKEN.finditer(body):
        text = token[0]
        if text in (b"[", b"{"):
            depth += 1
            if depth == 2:
                within = text == b"[" and member == b'"items"'
                found = found or within
            elif depth == 3:
                begin = token.start()
        elif text in (b"]", b"}"):
            if depth == 3 and within:
                yield body[begin : token.end()]
            depth -= 1
        elif depth == 1:
            member = text
    if not found or depth:
        raise ValueError("the body is no batch of callbacks")


def _webhook_id(item: bytes) -> str:
    """The item's `webhookId`, whatever numbers it has beside; empty if it has none."""
    try:
        found = json.loads(item, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return ""
    webhook_id = found.get("webhookId") if isinstance(found, dict) else None
    return webhook_id if isinstance(webhook_id, str) else ""


def _result(webhook_id: str, answer: Answer) -> bytes:
    """The status, the wait, and the members of the body."""
    head = f'"webhookId":{json.dumps(webhook_id)},"status":{answer.status}'
    if "retry-after" in answer.headers:
        head += f',"retryAfter":{int(answer.headers["retry-after"])}'
    body = answer.body.strip()[1:-1] if answer.headers.get("content-type") == _JSON else b""
    return b"{%b%b}" % (head.encode(), b"," + body if body else b"")
