"""Changes and pings of monitors on a real engine, while the store is slow, or others change the same monitor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.patience import PATIENCE_S
from tests.unit.test_forwarded_writes import Elsewhere, Node

from tocsin.model.errors import (
    MonitorNotFound,
    Overloaded,
    QuotaExceeded,
    ShardUnavailable,
    StoreCallFailed,
    Unavailable,
    VersionConflict,
)
from tocsin.model.monitor import BODY_BYTES_MAX, MonitorDefinition, Ping, PingEvent, new_token
from tocsin.model.timer import Timer
from tocsin.ports.records import Record
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers import monitors as limits
from tocsin.timers.monitor_records import MONITOR_TOKENS, MONITORS
from tocsin.timers.monitors import MonitorListRequest, Monitors, MonitorView
from tocsin.web.api.monitors import PingHandlers
from tocsin.web.api.request import AsgiRequest
from tocsin.web.http.access import AuthFailures
from tocsin.web.http.errors import TooManyFailures
from tocsin.web.http.hosts import Proxies
from tocsin.web.http.monitors import MonitorRequests, kept

HOURLY = MonitorDefinition(every_us=3_600_000_000)
OK = Ping(PingEvent.SUCCESS)


class Watched(MemoryStore):
    """A store with which the test waits, or does something in between."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        #: Look-ups of tokens so far, and what they wait for.
        self.looked_up = 0
        self.answers, self._begun = asyncio.Event(), asyncio.Condition()
        self.answers.set()
        #: Called once before records of monitors are removed, and after one was written.
        self.before_removal: Callable[[], Awaitable[object]] | None = None
        self.after_listing: Callable[[], Awaitable[object]] | None = None
        #: Whether histories can be removed.
        self.forgets = True

    async def record(self, kind: str, key: str) -> Record | None:
        if kind == MONITOR_TOKENS:
            async with self._begun:
                self.looked_up += 1
                self._begun.notify_all()
            await self.answers.wait()
        return await super().record(kind, key)

    async def until_looked_up(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self._begun:
            await self._begun.wait_for(lambda: self.looked_up >= count)

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        done = await super().put_record(kind, key, value, expected)
        if kind == MONITORS and self.after_listing is not None:
            called, self.after_listing = self.after_listing, None
            await called()
        return done

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        if kind == MONITORS and self.before_removal is not None:
            called, self.before_removal = self.before_removal, None
            await called()
        return await super().delete_records(kind, keys)

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        if not self.forgets:
            raise StoreCallFailed("the store is away")
        await super().forget(shard_id, uuids)

    async def left(self) -> tuple[int, int]:
        """How many records of monitors and of tokens there are."""
        found = [await self.records(kind, limit=100) for kind in (MONITORS, MONITOR_TOKENS)]
        return len(found[0]), len(found[1])


class Served(Node):
    """A node with its monitors."""

    def __init__(self, store: Watched) -> None:
        super().__init__(store)
        self.store, self.monitors = store, Monitors(self.service)

    async def put(self, name: str = "m", expected_version: int | None = None) -> MonitorView:
        return await self.monitors.put(Timer("default", name, 0, "", 0, 0), HOURLY, expected_version=expected_version)

    async def listed(self) -> list[str]:
        return [view.timer.id for view in (await self.monitors.list(MonitorListRequest("default")))[0]]


@pytest.fixture
async def node() -> AsyncIterator[Served]:
    store = Watched()
    await store.open(1)
    made = Served(store)
    await made.start()
    yield made
    await made.supervisor.close()


# ---------------------------------------------------------------------- puts and deletes


async def test_a_put_that_is_refused_leaves_nothing(node: Served) -> None:
    with pytest.raises(VersionConflict):
        await node.put(expected_version=3)
    assert await node.store.left() == (0, 0)
    usual, node.context.limits = node.context.limits, replace(node.context.limits, pending_writes_max=0)
    with pytest.raises(Overloaded):
        await node.put()
    assert await node.store.left() == (0, 0)
    node.context.limits = usual
    assert (await node.put()).created
    node.context.limits = replace(usual, pending_writes_max=0)
    with pytest.raises(Overloaded):
        await node.monitors.rotate("default", "m")
    assert await node.store.left() == (1, 1)


async def test_a_put_whose_outcome_is_unknown_keeps_its_token(node: Served) -> None:
    node.supervisor.shards[0].closed = True
    elsewhere = Elsewhere()
    elsewhere.answer = ShardUnavailable("a commit's outcome is unknown")
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    with pytest.raises(ShardUnavailable):
        await node.put()
    assert await node.store.left() == (1, 1)


async def test_puts_count_as_creates(node: Served) -> None:
    await node.service.namespaces.update("default", quotas={"creates_per_second": 1})
    with pytest.raises(QuotaExceeded):
        for number in range(50):
            await node.put(f"{number}")


async def test_a_monitor_that_is_put_while_the_former_one_is_deleted_is_listed(node: Served) -> None:
    await node.put()
    node.store.before_removal = node.put
    await node.monitors.delete("default", "m")
    assert await node.listed() == ["m"]
    assert await node.store.left() == (1, 1)
    # Or the delete removes the record before the put creates the row.
    await node.monitors.delete("default", "m")
    node.store.after_listing = partial(node.store.delete_records, MONITORS, ["default/m"])
    assert (await node.put()).created
    assert await node.listed() == ["m"]


async def test_a_delete_that_was_interrupted_goes_on_when_it_is_repeated(node: Served) -> None:
    await node.put()
    await node.monitors.ping("default", "m", Ping(PingEvent.FAIL))
    node.store.forgets = False
    with pytest.raises(Unavailable):
        await node.monitors.delete("default", "m")
    node.store.forgets = True
    with pytest.raises(MonitorNotFound):
        await node.monitors.delete("default", "m")
    assert await node.store.left() == (0, 0)
    assert (await node.put()).created
    assert await node.monitors.history("default", "m", 10) == ([], None), "not of the former one"


# ---------------------------------------------------------------------- pings


def test_what_is_kept_of_a_body_has_a_limit_whatever_its_bytes_are() -> None:
    for body in (b"\xff" * BODY_BYTES_MAX, b"\0" * BODY_BYTES_MAX, b"a" * BODY_BYTES_MAX, b"\xc3\xa4" * BODY_BYTES_MAX):
        assert BODY_BYTES_MAX - 4 < len(kept(body).encode()) <= BODY_BYTES_MAX
    assert kept(b"\xff end") == "\ufffd end"


async def test_pings_for_a_namespace_that_is_gone_are_unknown(node: Served) -> None:
    await node.service.namespaces.create("gone")
    view = await node.monitors.put(Timer("gone", "m", 0, "", 0, 0), HOURLY)
    token = view.token
    assert token is not None
    await node.monitors.ping_by_token(token, OK)
    assert node.monitors.remembers(token)
    await node.service.namespaces.mark("gone", "job")
    with pytest.raises(MonitorNotFound, match=r"^no such monitor\Z"):
        # Not a further success, which would not be written.
        await node.monitors.ping_by_token(token, Ping(PingEvent.FAIL))
    assert not node.monitors.remembers(token)
    await node.service.namespaces.remove("gone", "job")
    with pytest.raises(MonitorNotFound, match=r"^no such monitor\Z"):
        await node.monitors.ping_by_token(token, OK)


async def test_pings_that_wait_for_a_look_up_are_limited(node: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_LOOKUPS_WAITING_MAX", 3)
    known = (await node.put()).token
    assert known is not None
    await node.monitors.ping_by_token(known, OK)
    node.store.answers.clear()
    asked = [
        asyncio.ensure_future(node.monitors.ping_by_token(new_token(), OK)) for _ in range(limits._LOOKUPS_MAX + 3)
    ]
    await node.store.until_looked_up(1 + limits._LOOKUPS_MAX)
    with pytest.raises(Overloaded):
        await node.monitors.ping_by_token(new_token(), OK)
    # One that was good before needs none.
    await node.monitors.ping_by_token(known, OK)
    asked[-1].cancel()
    node.store.answers.set()
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(each) for each in ended} == {MonitorNotFound, asyncio.CancelledError}
    with pytest.raises(MonitorNotFound):
        await node.monitors.ping_by_token(new_token(), OK)


def _request(token: str, body: bytes = b"") -> AsgiRequest:
    made = AsgiRequest({}, "c", ("10.0.0.1", 1), Proxies(), parameters={"token": token}, path="/ping/")
    made.body = body
    return made


async def test_nothing_is_looked_for_on_behalf_of_an_address_beyond_its_limit(node: Served) -> None:
    failures = AuthFailures(now_s=lambda: 1.0)
    pings = PingHandlers(cast("MonitorRequests", SimpleNamespace(monitors=node.monitors)), failures)
    good, unused = (await node.put("a")).token, (await node.put("b")).token
    assert good is not None and unused is not None
    pings.check(_request(good))
    assert (await pings.ping(_request(good))).status == 200
    with contextlib.suppress(TooManyFailures):
        while True:
            with contextlib.suppress(MonitorNotFound):
                pings.check(_request("no token"))
    for token in (new_token(), unused):
        with pytest.raises(TooManyFailures):
            pings.check(_request(token))
    pings.check(_request(good))
    assert (await pings.ping(_request(good))).status == 200


async def test_a_ping_waits_without_its_body(node: Served) -> None:
    pings = PingHandlers(cast("MonitorRequests", SimpleNamespace(monitors=node.monitors)), AuthFailures())
    token = (await node.put()).token
    assert token is not None
    node.store.answers.clear()
    request = _request(token, b"words")
    waiting = asyncio.ensure_future(pings.ping_with_body(request))
    await node.store.until_looked_up(1)
    assert request.body == b""
    node.store.answers.set()
    assert (await waiting).status == 200
    ((period,), _) = await node.monitors.history("default", "m", 10)
    assert period.body == "words"
