"""Creates timers from existing ones, runs and copies, and derives their ids. The original keeps its id and its history."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Protocol

import msgspec

from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import TimerExists
from tocsin.model.timer import Status, Timer
from tocsin.timers.service import TimerService
from tocsin.web.http import wire
from tocsin.web.http.convert import RequestParser

#: The pages create timers under this condition, so that they never replace a timer unasked.
UNLESS_EXISTS = Condition(OnConflict.REJECT)
#: Numbered ids that are tried before one with random digits: each attempt costs a refused write.
_NUMBERS_TRIED = 20
_RANDOM_DIGITS = 8
_RUN = re.compile(r"(.+)-run-([1-9][0-9]{0,5})\Z", re.DOTALL)
_COPY = re.compile(r"(.+)-copy(?:-[1-9][0-9]{0,5})?\Z", re.DOTALL)


def run_of(timer_id: str) -> tuple[str, int]:
    """The id of a timer's first run, and the number of this run."""
    match = _RUN.match(timer_id)
    return (match[1], int(match[2])) if match else (timer_id, 1)


def run_id(first: str, number: int, chars_max: int) -> str:
    """The id of a run. If it would be too long, the end of the first run's id is cut off."""
    return first if number == 1 else _ending(first, f"-run-{number}", chars_max)


def neighbours(timer_id: str, chars_max: int) -> tuple[str | None, str]:
    """The ids of a timer's previous and next run; None for the first run's previous one."""
    first, number = run_of(timer_id)
    return run_id(first, number - 1, chars_max) if number > 1 else None, run_id(first, number + 1, chars_max)


def run_ids(timer_id: str, chars_max: int) -> Iterator[str]:
    """Candidate ids for the next run of a timer, in order of preference. The last one has random digits."""
    first, number = run_of(timer_id)
    return _candidates(first, "-run", number + 1, chars_max)


def copy_ids(timer_id: str, chars_max: int) -> Iterator[str]:
    """Candidate ids for a copy of a timer, in order of preference. The last one has random digits."""
    match = _COPY.match(timer_id)
    first = match[1] if match else timer_id
    return chain([_ending(first, "-copy", chars_max)], _candidates(first, "-copy", 2, chars_max))


def _candidates(first: str, word: str, number: int, chars_max: int) -> Iterator[str]:
    for end in (*range(number, number + _NUMBERS_TRIED), uuid.uuid4().hex[:_RANDOM_DIGITS]):
        yield _ending(first, f"{word}-{end}", chars_max)


def _ending(first: str, end: str, chars_max: int) -> str:
    return first[: chars_max - len(end)] + end


class Finder(Protocol):
    """Finds what is stored under ids."""

    async def get_many(self, namespace: str, ids: Iterable[str], /) -> Mapping[str, object]:
        """What exists, by its id."""
        ...


async def first_free(finder: Finder, namespace: str, ids: Iterator[str]) -> str:
    """The first id under which nothing exists now; the last one if all are taken."""
    timer_id = next(ids)
    while await finder.get_many(namespace, [timer_id]) and (further := next(ids, None)) is not None:
        timer_id = further
    return timer_id


def unstarted(original: Timer, execute_at: int, now_us: int) -> Timer:
    """A pending timer with the settings of another, without its attempts."""
    return msgspec.structs.replace(
        original,
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
    service: TimerService, parser: RequestParser, original: Timer, execute_at: int, now_us: int, chars_max: int
) -> str:
    """Creates a copy of a finished timer, and returns its new id; the finished timer keeps its history. Raises InvalidInput
    if callbacks to the URL are no longer allowed, and whatever `create_under_free_id` raises."""
    checked = parser.changes(wire.UpdateTimer(original.namespace, original.id, callback_url=original.url), now_us)
    timer = unstarted(original, execute_at, now_us)
    if checked.url is not msgspec.UNSET:
        timer.url = checked.url
    return await create_under_free_id(service, timer, run_ids(original.id, chars_max))


async def create_under_free_id(service: TimerService, timer: Timer, ids: Iterator[str]) -> str:
    """Creates the timer under the first free id, and returns that id. Raises TimerExists if none is free, and whatever
    `TimerService.create` raises."""
    for timer_id in ids:
        try:
            await service.create(msgspec.structs.replace(timer, id=timer_id), UNLESS_EXISTS)
        except TimerExists:
            continue
        return timer_id
    raise TimerExists(f"no free id was found for a copy of {timer.id!r}")
