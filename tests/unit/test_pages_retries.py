"""What Now knows of places at which attempts failed and were retried."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tocsin.http_client.target import parse_url
from tocsin.model.errors import Unavailable
from tocsin.model.timer import Timer
from tocsin.statistics.slots import Failures, failing_place
from tocsin.web.pages.calls.agent import STANDBY
from tocsin.web.pages.overview.open_failures import needing_attention, with_uncounted_ends
from tocsin.web.pages.overview.retries import CallRetries, TimerRetries

SECOND, MINUTE = 1_000_000, 60_000_000
NOW = 100 * 60 * MINUTE + 30 * SECOND
PLACE = failing_place("billing", "http://psp:80", "/charge")


class Pending:
    """A service with pending timers and schedules."""

    def __init__(self, *rows: tuple[str, int, str | None]) -> None:
        self.rows, self.away = list(rows), False
        self.repeated: list[tuple[str, int, str | None]] = []
        self.more: str | None = None
        self.more_repeated: str | None = None
        self.reads: list[str] = []
        self.destinations = self

    async def list_answers(self, _wanted: Any, answer: Any) -> tuple[list[Any], str | None]:
        if self.away:
            raise Unavailable("away")
        self.reads.append("timers")
        return self._answers(self.rows, answer), self.more

    async def list_schedules(self, _scope: None, _wanted: Any, answer: Any) -> tuple[list[Any], str | None]:
        self.reads.append("schedules")
        return self._answers(self.repeated, answer), self.more_repeated

    def _answers(self, rows: list[tuple[str, int, str | None]], answer: Any) -> list[Any]:
        return [
            answer(SimpleNamespace(timer=Timer("billing", "t", 0, url, 0, 0, attempts=attempts), suspended=suspended))
            for url, attempts, suspended in rows
        ]

    def name_of(self, url: str) -> str:
        return parse_url(url).origin.destination


class Now:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = NOW

    def now_us(self) -> int:
        return self.now


async def test_a_place_has_recovered_once_nothing_waits_to_be_tried_there_again() -> None:
    pending, listed = Pending(("http://u:p@psp/charge?key=1", 2, None)), Now()
    retries = TimerRetries(pending, listed)  # type: ignore[arg-type]
    failing = {PLACE: Failures(5, 0, "HTTP_500", NOW - 5 * MINUTE)}

    async def attention() -> dict[str, Failures]:
        await retries._read()
        return needing_attention(failing, lambda _: None, retries.recovered)

    # Before the store was read, it is not known.
    assert needing_attention(failing, lambda _: None, retries.recovered) == failing
    assert await attention() == failing
    # Others, and what waits for its first attempt, don't matter.
    pending.rows = [("http://psp/charge", 0, None), ("http://psp/refund", 2, None)]
    assert await attention() == {}
    # An occurrence of a schedule, or a timer that the settings keep from being sent, does.
    pending.repeated = [("http://psp/charge", 1, None)]
    assert await attention() == failing
    pending.repeated, pending.rows = [], [("http://psp/charge", 0, "egress")]
    assert await attention() == failing
    pending.rows = []
    assert await attention() == {}
    # What failed just now is not known, nor anything while the store is away.
    # The latest failure may be from the end of its slot.
    failing[PLACE] = Failures(5, 0, "HTTP_500", NOW - 2 * MINUTE + SECOND)
    assert await attention() == failing
    listed.now = NOW + SECOND
    assert await attention() == {}
    pending.away = True
    assert await attention() == failing
    # Timers that failed are none that recover.
    pending.away, failing[PLACE] = False, Failures(5, 1, "HTTP_500", NOW - 5 * MINUTE)
    assert await attention() == failing


async def test_many_timers_or_schedules_are_not_read_again_for_a_while() -> None:
    pending, listed = Pending(), Now()
    retries = TimerRetries(pending, listed)  # type: ignore[arg-type]
    quiet = Failures(5, 0, "HTTP_500", NOW - 5 * MINUTE)

    async def reads() -> list[str]:
        pending.reads.clear()
        await retries._read()
        return list(pending.reads)

    assert await reads() == ["timers", "schedules"]
    assert retries.recovered(PLACE, quiet)
    # More than are read: it is not known of any place.
    pending.more = "more"
    assert await reads() == ["timers"]
    assert not retries.recovered(PLACE, quiet)
    pending.more, pending.more_repeated = None, "more"
    listed.now += 5 * MINUTE - SECOND
    assert await reads() == []
    listed.now += SECOND
    assert await reads() == ["timers", "schedules"]
    assert not retries.recovered(PLACE, quiet)
    pending.more_repeated = None
    assert await reads() == []
    listed.now += 5 * MINUTE
    assert await reads() == ["timers", "schedules"]
    assert retries.recovered(PLACE, quiet)


async def test_page_is_drawn_again_when_other_places_of_its_scope_wait_for_a_retry() -> None:
    pending = Pending(("http://psp/charge", 2, None))
    retries = TimerRetries(pending, Now())  # type: ignore[arg-type]
    await retries._read()
    scopes = [lambda name: name == "billing", lambda name: name == "other"]
    before = [retries.version(wanted) for wanted in scopes]
    pending.rows = [("http://psp/refund", 2, None)]
    await retries._read()
    assert [retries.version(wanted) != seen for wanted, seen in zip(scopes, before, strict=True)] == [True, False]


class Calls:
    """The agent with unfinished calls to these URLs of which an attempt has failed; `away`: another node runs it."""

    def __init__(self, *urls: str) -> None:
        self.urls: list[str] | None = list(urls)
        self.away, self.most = False, 0

    def source(self) -> Any:
        return STANDBY if self.away else self

    async def attempted_urls(self, most: int) -> list[str] | None:
        self.most = most
        return self.urls


async def test_calls_recover_like_timers_where_the_agent_knows_them() -> None:
    calls, place = Calls("http://shop/x", "http://u:p@psp/charge?key=1"), failing_place("", "http://psp:80")
    retries = CallRetries(Pending(), calls.source, Now())  # type: ignore[arg-type]
    failing = {place: Failures(5, 0, "HTTP_500", NOW - 5 * MINUTE)}

    async def attention() -> dict[str, Failures]:
        await retries._read()
        return needing_attention(failing, lambda _: None, retries.recovered)

    assert await attention() == failing
    calls.urls = ["http://shop/x"]
    assert await attention() == {}
    calls.away = True
    assert await attention() == failing
    calls.away, calls.urls = False, None
    assert await attention() == failing
    assert calls.most == 1_000


def test_the_end_of_a_call_may_be_counted_without_its_last_attempt() -> None:
    place, end = failing_place("", "http://psp:80"), Failures(0, 1, "HTTP_500", NOW - 5 * MINUTE)
    for left, needs in ((None, {place: end}), (1, {place: end}), (0, {})):
        assert needing_attention({place: end}, {place: left}.get, lambda *_: False) == needs


def test_a_call_that_is_listed_as_failed_needs_attention_although_its_end_was_not_counted() -> None:
    place, attempts = failing_place("", "http://psp:80"), Failures(3, 0, "HTTP_500", NOW - 5 * MINUTE)
    ended = Failures(3, 2, "HTTP_500", NOW - 5 * MINUTE)
    for left, needs in ((2, {place: ended}), (0, {}), (None, {})):
        counted = with_uncounted_ends({place: attempts}, {place: left}.get)
        assert needing_attention(counted, {place: left}.get, lambda *_: True) == needs
    # What is left of more that were counted stays a part of these.
    assert with_uncounted_ends({place: ended}, {place: 1}.get) == {place: ended}
