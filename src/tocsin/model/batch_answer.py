"""What the response to a batch of callbacks means for each timer. `docs/how-to/batches.md` describes it."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
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


class _ReadableResults(msgspec.Struct):
    items: list[_Result]


_decode_readable = msgspec.json.Decoder(_ReadableResults).decode
_decode_results = msgspec.json.Decoder(_Results).decode
_decode_result = msgspec.json.Decoder(_Result).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def item_responses(response: Response, webhook_ids: Collection[str]) -> dict[str, Response]:
    """For each timer of a batch, by its `webhook-id`, its part of the response, as the response to a single callback
    would. A timer without a readable result has a MissingResult; of several results the first counts. Never raises."""
    found: dict[str, Response] = {}
    if 200 <= response.status < 300 and not response.truncated:
        found = _acceptances(response.body) or _each(response.body)
    missing = MissingResult(response.status, response.body, response.retry_after, response.truncated)
    return {webhook_id: found.get(webhook_id, missing) for webhook_id in webhook_ids}


def _acceptances(body: bytes) -> dict[str, Response]:
    """What a body means that accepts every timer, as most do, without anything else; empty for any other."""
    try:
        results = _decode_readable(body).items
    except _UNREADABLE:
        return {}
    if not all(map(_is_acceptance, results)):
        return {}
    # The first of several results counts.
    return {result.webhook_id: _accepted(result.status, result.retry_after) for result in reversed(results)}


def _each(body: bytes) -> dict[str, Response]:
    """What each readable result of a body means."""
    found: dict[str, Response] = {}
    for raw in _results(body):
        try:
            result = _decode_result(raw)
        except _UNREADABLE:
            continue
        if result.webhook_id not in found:
            found[result.webhook_id] = _response(result, raw)
    return found


def _results(body: bytes) -> list[msgspec.Raw]:
    try:
        return _decode_results(body).items
    except _UNREADABLE:
        return []


def _response(result: _Result, raw: msgspec.Raw) -> Response:
    if _is_acceptance(result):
        return _accepted(result.status, result.retry_after)
    return Response(result.status, bytes(raw), None if result.retry_after is None else str(result.retry_after))


def _is_acceptance(result: _Result) -> bool:
    plain = result.ok is msgspec.UNSET and result.next_execute_at is msgspec.UNSET
    return plain and 200 <= result.status < 300


@lru_cache(maxsize=128)
def _accepted(status: int, retry_after: int | None) -> Response:
    """A plain acceptance has no body, which namespaces with strict answers take as such."""
    return Response(status, retry_after=None if retry_after is None else str(retry_after))
