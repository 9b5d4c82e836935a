"""Live updates: an open page is notified of every change that it does not show yet."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.support.patience import PATIENCE_S
from tocsin.model.errors import Unavailable
from tocsin.web.http.errors import problem_kind
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams


async def test_change_event_is_repeated_once() -> None:
    """A change may not be durable yet when a page reads it right after the first event."""
    rounds, received = 0, []

    def update() -> dict[str, Any]:
        nonlocal rounds
        rounds += 1
        return {"changed": rounds >= 4}

    events = Streams(UiLimits(live_interval_s=0.001)).events(update)
    assert await anext(events) == b"retry: 2000\n\n"
    async with asyncio.timeout(PATIENCE_S):
        while len(received) < 4:
            event = await anext(events)
            received.append((rounds, event))
    await events.aclose()
    before, after = b'data: {"changed":false}\n\n', b'data: {"changed":true}\n\n'
    assert received == [(1, before), (2, before), (4, after), (5, after)]


async def test_event_is_sent_every_ten_seconds_however_long_a_round_takes() -> None:
    """Without one for half a minute, a page states that the server does not answer."""
    now_s = 0.0
    sent_at_s: list[float] = []

    async def refresh() -> None:
        nonlocal now_s
        now_s += 4.0

    events = Streams(UiLimits(live_interval_s=0.001), now_s=lambda: now_s).events(lambda: {"changed": 1}, refresh)
    assert await anext(events) == b"retry: 2000\n\n"
    async with asyncio.timeout(PATIENCE_S):
        while len(sent_at_s) < 4:
            assert await anext(events) == b'data: {"changed":1}\n\n'
            sent_at_s.append(now_s)
    await events.aclose()
    assert sent_at_s == [4.0, 8.0, 20.0, 32.0]


async def test_stream_beyond_their_number_is_refused_for_the_time_being() -> None:
    with pytest.raises(Unavailable) as refused:
        Streams(UiLimits(streams_max=0)).response(cast("RequestContext", None), dict)
    assert problem_kind(refused.value).status == 429
