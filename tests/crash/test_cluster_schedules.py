"""Schedules every second on three nodes, of which one is killed, one frozen and one restarted in order: no occurrence is
lost, none fires early, and each is recognised by its webhook-id."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.crash.cluster_run import NAMES
from tests.support.calls import Api
from tests.support.cluster import DATABASE, new_database, node, now_us, running, shared_by, until
from tests.support.scripted import Arrival, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_SECOND, format_instant, parse_instant

#: On these it is also the test of three nodes that are killed, frozen and restarted; PostgreSQL has others.
_DATABASES = ("dynamodb", "mongodb") if DATABASE == "postgresql" else (DATABASE,)
#: How many instants each schedule has, a second apart: longer than the faults take.
_INSTANTS = 36
#: Enough that each node has some, whichever shards it owns.
_SCHEDULES = 12
#: How far ahead the first instant of a schedule is when it is created: longer than a write may wait (`write_timeout`).
_AHEAD_S = 12


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", _DATABASES)
async def test_no_occurrence_is_lost_or_early_whatever_happens_to_the_nodes(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    url = await new_database(request, database)
    one, two, three = servers = [node(tmp_path, name, url) for name in NAMES]
    async with ScriptedReceiver({}) as receiver, running(*servers):
        await shared_by(servers, set(NAMES))
        created = await asyncio.gather(
            *(
                _create(one, receiver, f"{catch_up}-{number}", catchUp=catch_up)
                for catch_up in ("all", "latest")
                for number in range(_SCHEDULES)
            )
        )
        due_of = dict(created)
        await receiver.count("all-0", 3)
        await three.kill()
        await shared_by([one, two], {"one", "two"})
        assert two.process is not None
        two.process.send_signal(signal.SIGSTOP)
        await three.start()
        await shared_by([one, three], {"one", "three"})
        two.process.send_signal(signal.SIGCONT)
        await shared_by(servers, set(NAMES))
        assert await one.stop() == 0
        await one.start()
        await shared_by(servers, set(NAMES))
        ended = {name: await _ended(one, name) for name in receiver.calls}
        assert len(ended) == 2 * _SCHEDULES
        for name, schedule in ended.items():
            due = due_of[name]
            fired = _check_calls(schedule, receiver.calls[name], due)
            completed, missed = schedule["counts"]["completed"], sum(schedule["missed"].values())
            print(
                f"{name}: {len(receiver.calls[name])} calls of {fired} instants; {completed} completed, {missed} missed"
            )
            assert completed + missed == len(due)
            if schedule["catchUp"] == "all":
                assert completed == fired == len(due)
            else:
                # The result of a call may be lost with its node. By the takeover, a later instant has come in its place.
                assert completed <= fired <= len(due)


async def _create(server: ServerProcess, receiver: ScriptedReceiver, name: str, **more: Any) -> tuple[str, list[int]]:
    """Creates the schedule, again after a 503: whoever has such an answer repeats the request. Its name and its instants."""
    start_us = 0

    async def is_created() -> bool:
        nonlocal start_us
        start_us = (now_us() // US_PER_SECOND + _AHEAD_S) * US_PER_SECOND
        status, answer = await Api(server)(
            "schedules/create",
            namespace="default",
            id=name,
            callbackUrl=receiver.url(name),
            every="1s",
            anchor=format_instant(start_us),
            startAt=format_instant(start_us),
            endAt=format_instant(start_us + _INSTANTS * US_PER_SECOND),
            **more,
        )
        assert status in (200, 503), answer
        return status == 200

    await until(is_created)
    # A schedule has no instants before its creation.
    assert now_us() < start_us, "the schedule took too long to be created"
    return name, [start_us + number * US_PER_SECOND for number in range(_INSTANTS)]


async def _ended(server: ServerProcess, name: str) -> Any:
    """The schedule, once it has ended."""
    found: list[Any] = []

    async def has_ended() -> bool:
        status, schedule = await Api(server)("schedules/get", namespace="default", scheduleId=name)
        assert status == 200, schedule
        found[:] = [schedule]
        return bool(schedule["status"] == "ended")

    await until(has_ended)
    return found[0]


def _check_calls(schedule: Any, calls: list[Arrival], due: list[int]) -> int:
    """Checks that no call was early and that each occurrence has one webhook-id; returns how many instants fired."""
    uuid = schedule["scheduleUuid"].replace("-", "")
    fired = set()
    for call in calls:
        instant = parse_instant(call.body["executeAt"])
        assert instant in due
        assert call.arrived_at >= instant
        assert call.headers["webhook-id"] == f"msg_{uuid}_s-{instant}"
        fired.add(instant)
    return len(fired)
