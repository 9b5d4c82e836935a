"""What the response to a batch of callbacks means for each timer. `docs/how-to/batches.md` describes it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, lru_cache
from typing import Annotated, Any

import msgspec
from msgspec.structs import astuple

from tocsin.model.answer import MissingResult, Response

#: Results that are read for each timer of a batch; further ones are not. A receiver sends one. Its response may have room for
#: thousands of values for each timer, whose reading would hold up the event loop.
RESULTS_FOR_EACH = 2


class _Results(msgspec.Struct):
    items: msgspec.Raw


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
        found = _found(response.body, webhook_ids)
    missing = MissingResult(response.status, response.body, response.retry_after, response.truncated)
    return {webhook_id: found.get(webhook_id, missing) for webhook_id in webhook_ids}


def _found(body: bytes, webhook_ids: Collection[str]) -> dict[str, Response]:
    """What the readable results among the first ones of a body mean."""
    try:
        items = _decode_results(body).items
    except _UNREADABLE:
        return {}
    return _acceptances(items, RESULTS_FOR_EACH * len(webhook_ids)) or _each(items, webhook_ids)


def _acceptances(items: msgspec.Raw, count: int) -> dict[str, Response]:
    """What results mean that accept every timer, as most do, without anything else; empty for any others."""
    try:
        results: list[_Result] = _first(items, count, _Result)
    except _UNREADABLE:
        return {}
    if not all(map(_is_acceptance, results)):
        return {}
    # The first of several results counts.
    return {result.webhook_id: _accepted(result.status, result.retry_after) for result in reversed(results)}


def _each(items: msgspec.Raw, webhook_ids: Collection[str]) -> dict[str, Response]:
    """What each readable result means."""
    found: dict[str, Response] = {}
    missing = set(webhook_ids)
    try:
        results: list[msgspec.Raw] = _first(items, RESULTS_FOR_EACH * len(webhook_ids), msgspec.Raw)
    except _UNREADABLE:
        return found
    for raw in results:
        if not missing:
            break
        try:
            result = _decode_result(raw)
        except _UNREADABLE:
            continue
        if result.webhook_id in missing:
            missing.remove(result.webhook_id)
            found[result.webhook_id] = _response(result, raw)
    return found


def _first(items: msgspec.Raw, count: int, of: type) -> list[Any]:
    """The first elements of a JSON array, at most so many; the decoder skips the others without making anything of them.
    Raises what _UNREADABLE names."""
    # A few sizes, so that few decoders are made and kept.
    elements = astuple(_decoder(1 << (count - 1).bit_length(), of)(items))
    return [element for element in elements[:count] if element is not msgspec.UNSET]


@cache
def _decoder(size: int, of: type) -> Callable[[msgspec.Raw], msgspec.Struct]:
    """Decodes the first elements of a JSON array, as many as that, as the fields of a struct."""
    fields = [(f"element_{number}", of | msgspec.UnsetType, msgspec.UNSET) for number in range(size)]
    return msgspec.json.Decoder(msgspec.defstruct("_Elements", fields, array_like=True)).decode


def _response(result: _Result, raw: msgspec.Raw) -> Response:
    if _is_acceptance(result):
        return _accepted(result.status, result.retry_after)
    return Response(result.status, bytes(raw), None if result.retry_after is None else str(result.retry_after))


def _is_acceptance(result: _Result) -> bool:
    plain = _is_absent(result.ok) and _is_absent(result.next_execute_at)
    return plain and 200 <= result.status < 300


def _is_absent(member: msgspec.Raw | msgspec.UnsetType) -> bool:
    """Many receivers serialize objects together with their empty members."""
    return isinstance(member, msgspec.UnsetType) or bytes(member) == b"null"


@lru_cache(maxsize=128)
def _accepted(status: int, retry_after: int | None) -> Response:
    """A plain acceptance has no body, which namespaces with strict answers take as such."""
    return Response(status, retry_after=None if retry_after is None else str(retry_after))
