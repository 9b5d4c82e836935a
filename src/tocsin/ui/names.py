"""Ids for timers that are made from others: runs of a finished one, and copies. What exists keeps its id and its history."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import msgspec

from tocsin.http import wire
from tocsin.http.convert import RequestParser
from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import TimerExists
from tocsin.model.timer import Status, Timer
from tocsin.service import TimerService

#: The condition under which the pages create: what exists is never replaced without a word.
UNLESS_EXISTS = Condition(OnConflict.REJECT)
#: Numbers that are tried before an id gets random digits: each costs a write that is refused.
_NUMBERS_TRIED = 20
_RANDOM_DIGITS = 8
_RUN = re.compile(r"(.+)-run-([1-9][0-9]{0,5})\Z", re.DOTALL)
_COPY = re.compile(r"(.+)-copy(?:-[1-9][0-9]{0,5})?\Z", re.DOTALL)


def run_of(timer_id: str) -> tuple[str, int]:
    """The id that a timer's runs share, and which of them this is: the first is called as all are."""
    match = _RUN.match(timer_id)
    return (match[1], int(match[2])) if match else (timer_id, 1)


def run_id(first: str, number: int, chars_max: int) -> str:
    """What a run is called; an id that gets too long loses its end."""
    return first if number == 1 else _ending(first, f"-run-{number}", chars_max)


def neighbours(timer_id: str, chars_max: int) -> tuple[str | None, str]:
    """What the runs before and after a timer are called."""
    first, number = run_of(timer_id)
    return run_id(first, number - 1, chars_max) if number > 1 else None, run_id(first, number + 1, chars_max)


def run_ids(timer_id: str, chars_max: int) -> Iterator[str]:
    """Ids for a further run of a timer, the best first. The last has random digits."""
    first, number = run_of(timer_id)
    for further in range(number + 1, number + 1 + _NUMBERS_TRIED):
        yield run_id(first, further, chars_max)
    yield _random(f"{first}-run", chars_max)


def copy_ids(timer_id: str, chars_max: int) -> Iterator[str]:
    """Ids for another timer like one that exists, the best first. The last has random digits."""
    match = _COPY.match(timer_id)
    first = match[1] if match else timer_id
    yield _ending(first, "-copy", chars_max)
    for number in range(2, 2 + _NUMBERS_TRIED):
        yield _ending(first, f"-copy-{number}", chars_max)
    yield _random(f"{first}-copy", chars_max)


def _ending(first: str, end: str, chars_max: int) -> str:
    return first[: chars_max - len(end)] + end


def _random(first: str, chars_max: int) -> str:
    return _ending(first, f"-{uuid.uuid4().hex[:_RANDOM_DIGITS]}", chars_max)


async def first_free(service: TimerService, namespace: str, ids: Iterator[str]) -> str:
    """The first of the ids under which no timer exists now; the last of them if all do."""
    timer_id = next(ids)
    while await service.get_many(namespace, [timer_id]) and (further := next(ids, None)) is not None:
        timer_id = further
    return timer_id


def anew(former: Timer, execute_at: int, now_us: int) -> Timer:
    """The same settings as a timer that has not begun."""
    return msgspec.structs.replace(
        former,
        execute_at=execute_at,
        created_at=now_us,
        updated_at=now_us,
        traceparent=None,
        firing="",
        attempts=0,
        first_attempt_at=None,
        last_error=None,
        attempt_log=(),
        status=Status.PENDING,
        executed_at=None,
        keys=(),
    )


async def run_again(
    service: TimerService, parser: RequestParser, former: Timer, execute_at: int, now_us: int, chars_max: int
) -> str:
    """Creates another timer like a finished one, and returns its id, which is new: the finished one keeps its history.
    InvalidInput where its URL may not be called any more, and what `create_under_free_id` raises."""
    checked = parser.changes(wire.UpdateTimer(former.namespace, former.id, callback_url=former.url), now_us)
    timer = anew(former, execute_at, now_us)
    if checked.url is not msgspec.UNSET:
        timer.url = checked.url
    return await create_under_free_id(service, timer, run_ids(former.id, chars_max))


async def create_under_free_id(service: TimerService, timer: Timer, ids: Iterator[str]) -> str:
    """Creates the timer under the first of the ids that is free, and returns that. TimerExists if none is, and what
    `TimerService.create` raises."""
    for timer_id in ids:
        try:
            await service.create(msgspec.structs.replace(timer, id=timer_id), UNLESS_EXISTS)
        except TimerExists:
            continue
        return timer_id
    raise TimerExists(f"every id that was tried for another {timer.id!r} exists")
