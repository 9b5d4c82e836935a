"""Statistics on real servers: complete minutes survive SIGKILL, and an outage of the database is an interval with true
numbers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import Api, Inbox
from tests.support.cluster import node, now_us, proxies_to, running, until
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.model.instants import parse_instant
from tocsin.statistics.records import MINUTES

SECOND = 1_000_000
#: Longer than a node's lease, so that the node fires nothing for seconds.
SILENT_S = 5
TIMERS = 40


@pytest.fixture
async def inbox() -> AsyncIterator[tuple[Inbox, str]]:
    inbox = Inbox()
    async with Receiver(inbox) as receiver:
        yield inbox, receiver.url


async def statistics(api: Api) -> dict[str, Any]:
    status, answer = await api("statistics/get")
    assert status == 200, answer
    return dict(answer)


async def test_complete_minutes_survive_sigkill(tmp_path: Path, inbox: tuple[Inbox, str]) -> None:
    calls, url = inbox
    calls.answers = [(503, b"")] * 2
    server = ServerProcess(tmp_path / "dev", "--no-agent", command="dev")

    async def are_stored() -> bool:
        with sqlite3.connect(f"file:{tmp_path / 'dev' / 'tocsin.db'}?mode=ro", uri=True) as database:
            found = database.execute(
                "SELECT 1 FROM records WHERE record_kind = ? AND record_key > ''", (MINUTES,)
            ).fetchall()
        return len(found) == len((await statistics(api))["slots"]) > 0

    async with running(server):
        api = Api(server)
        for number in range(5):
            await api.create(f"t{number}", url, delay="1s")
        # The end of the minute passes, and then that of the minute in which a retry may have been.
        for _ in range(2):
            assert (await api("dev/clock/advance", by="2m"))[0] == 200
        await until(are_stored)
        before = await statistics(api)
        await server.kill()
    async with running(server):
        after = await statistics(Api(server))
    assert after["slots"] == before["slots"]
    assert after["failing"] == before["failing"]
    assert [sum(slot[name] for slot in after["slots"]) for name in ("created", "completed", "retried")] == [5, 5, 2]
    assert [(each["path"], each["failures"], each["lastError"]) for each in after["failing"]] == [
        ("/hook", 2, "HTTP_503")
    ]


async def test_an_outage_of_the_database_is_an_interval(
    tmp_path: Path, postgresql_url: str, inbox: tuple[Inbox, str]
) -> None:
    calls, url = inbox
    async with proxies_to([postgresql_url]) as [(proxy, reached)]:
        server = node(tmp_path, "one", reached)
        async with running(server):
            api = Api(server)
            for number in range(TIMERS):
                await api.create(f"t{number}", url, delay=f"{1500 + number * 250}ms")
            await calls.count(4)
            proxy.silence()
            await asyncio.sleep(SILENT_S)
            spoke_at = now_us()
            proxy.speak()
            await calls.count(TIMERS)

            async def found() -> list[dict[str, Any]]:
                """The outage of the silence. A busy machine may have caused others, before or after it."""
                outages = (await statistics(api))["outages"]
                return [each for each in outages if _began(each) < spoke_at <= _ended(each)]

            async def is_settled() -> bool:
                return [each["counting"] for each in await found()] == [False]

            await until(is_settled)
            (outage,) = await found()
            await server.kill()
        async with running(server):
            assert outage in (await statistics(Api(server)))["outages"]
    assert (outage["node"], outage["reason"]) == ("one", "lease")
    # What was due in the outage waited for its end. Whatever arrived that late was late, and by at least as much.
    due_and_lag = [(parse_instant(call.body["executeAt"]), call.lag_us) for call in calls.calls]
    waited = sum(_began(outage) <= due < _ended(outage) - 1.2 * SECOND for due, _ in due_and_lag)
    lags = [lag for due, lag in due_and_lag if due < _ended(outage) and lag > SECOND]
    assert 0 < waited <= outage["late"] <= len(lags)
    assert 1_000 < outage["lateMaxMs"] <= max(lags) / 1_000


def _began(outage: dict[str, Any]) -> int:
    return parse_instant(outage["from"])


def _ended(outage: dict[str, Any]) -> int:
    return parse_instant(outage["to"]) if "to" in outage else now_us()
