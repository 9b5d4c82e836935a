"""Bulk actions on timers and calls from an open page: step by step, so that the page shows progress and can stop.

A step takes some ids, or the next rows that match the filters of a list. It counts those that the action applies to, and with
`confirmed=yes` changes them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
from starlette.responses import JSONResponse, Response

from tocsin.model.errors import FieldError, InvalidInput, TocsinError
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import host_and_path

#: Names of a bulk action that are shown; the rest is counted.
NAMED_MAX = 8
#: Concurrent changes of a bulk action.
_PER_TURN = 100
_ids_decoder = msgspec.json.Decoder(list[str])


class Target(NamedTuple):
    """What an action applies to: its id, how it is named on the page, its page, and the URL that it calls."""

    id: str
    name: str
    path: str
    url: str


class NotDone(NamedTuple):
    """What could not be changed, and why."""

    id: str
    reason: str


async def change_all(
    ids: Sequence[str], change: Callable[[str], Awaitable[object]], reason: Callable[[TocsinError], str]
) -> list[NotDone]:
    """Changes each. Returns those that could not be changed, in the order of the ids."""
    refused: list[NotDone] = []
    for start in range(0, len(ids), _PER_TURN):
        turn = ids[start : start + _PER_TURN]
        outcomes = await asyncio.gather(*map(change, turn), return_exceptions=True)
        for one, outcome in zip(turn, outcomes, strict=True):
            if isinstance(outcome, TocsinError):
                refused.append(NotDone(one, reason(outcome)))
            elif isinstance(outcome, BaseException):
                raise outcome
    return refused


def distinct(ids: Iterable[str], most: int, noun: str) -> list[str]:
    """The distinct ids. Raises InvalidInput if they are too many."""
    found = list(dict.fromkeys(ids))
    if len(found) > most:
        raise InvalidInput(FieldError("", f"{len(found)} {noun}s are too many for one request; the maximum is {most}"))
    return found


def sent_ids(context: RequestContext, most: int, noun: str) -> list[str]:
    """The distinct ids of the field `ids`, a JSON array. Raises InvalidInput."""
    try:
        sent = _ids_decoder.decode(context.form.exact("ids"))
    except msgspec.DecodeError:
        raise InvalidInput(FieldError("ids", "is not a list of ids")) from None
    return distinct(sent, most, noun)


async def step(
    context: RequestContext,
    targets: Sequence[Target],
    other: int,
    change: Callable[[str], Awaitable[object]],
    reason: Callable[[TocsinError], str],
    cursor: str | None = None,
) -> Response:
    """Counts the targets, and changes them if that is confirmed. In the response `pending` counts them, and `other` what the
    action does not apply to; `refused` lists those that could not be changed."""
    by_id = {target.id: target for target in targets}
    refused = await change_all([*by_id], change, reason) if context.form.get("confirmed") == "yes" else []
    return JSONResponse(
        {
            "pending": len(targets),
            "other": other,
            "named": [target.name for target in targets[:NAMED_MAX]],
            "hosts": hosts(target.url for target in targets),
            "refused": [[by_id[one.id].name, by_id[one.id].path, one.reason] for one in refused],
            "cursor": cursor,
        }
    )


def hosts(urls: Iterable[str]) -> list[tuple[str, int]]:
    """The hosts of the URLs, and how often each occurs; the most common first."""
    return Counter(host_and_path(url)[0] for url in urls).most_common()
