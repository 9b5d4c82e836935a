"""What the response to a batch of callbacks means for each timer. `docs/how-to/batches.md` describes it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec

from tocsin.model.answer import MissingResult, Response


class _Results(msgspec.Struct):
    items: list[msgspec.Raw]


class _Result(msgspec.Struct, rename="camel"):
    """What concerns the batch. Values besides these stay JSON text: `judge` reads them like a response's body."""

    webhook_id: str
    status: Annotated[int, msgspec.Meta(ge=100, le=599)]
    retry_after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    ok: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    next_execute_at: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_results = msgspec.json.Decoder(_Results).decode
_decode_result = msgspec.json.Decoder(_Result).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def item_responses(response: Response, webhook_ids: Collection[str]) -> dict[str, Response]:
    """For each timer of a batch, by its `webhook-id`, its part of the response, as the response to a single callback
    would. A timer without a readable result has a MissingResult; of several results the first counts. Never raises."""
    found: dict[str, Response] = {}
    if 200 <= response.status < 300 and not response.truncated:
        for raw in _results(response.body):
            try:
                result = _decode_result(raw)
            except _UNREADABLE:
                continue
            if result.webhook_id not in found:
                found[result.webhook_id] = _response(result, raw)
    missing = MissingResult(response.status, response.body, response.retry_after, response.truncated)
    return {webhook_id: found.get(webhook_id, missing) for webhook_id in webhook_ids}


def _results(body: bytes) -> list[msgspec.Raw]:
    try:
        return _decode_results(body).items
    except _UNREADABLE:
        return []


def _response(result: _Result, raw: msgspec.Raw) -> Response:
    """A plain acceptance has no body, which namespaces with strict answers take as such."""
    plain = isinstance(result.ok, msgspec.UnsetType) and isinstance(result.next_execute_at, msgspec.UnsetType)
    body = b"" if plain and 200 <= result.status < 300 else bytes(raw)
    return Response(result.status, body, None if result.retry_after is None else str(result.retry_after))
