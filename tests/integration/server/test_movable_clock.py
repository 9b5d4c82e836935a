"""`tocsin dev`: flows of days in a moment, with real servers and receivers."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import Api, Call
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import US_PER_DAY, format_instant, parse_instant
from tocsin.server.dev_folder import MARK

HOUR_US = US_PER_DAY // 24


@asynccontextmanager
async def serving(folder: Path, *flags: str, command: str = "dev") -> AsyncIterator[ServerProcess]:
    running = ServerProcess(folder, *flags, command=command)
    await running.start()
    try:
        yield running
    finally:
        code = await running.stop()
    assert code == 0
    assert "Traceback" not in running.log(), running.log()[-4000:]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with serving(tmp_path / "dev") as running:
        yield running


class Log:
    """Keeps the calls, and answers them."""

    def __init__(self, answer: Callable[[Call], tuple[int, bytes]] = lambda call: (200, b"")) -> None:
        self.calls: list[Call] = []
        self._answer = answer

    def __call__(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        self.calls.append(Call(body, headers, time.time_ns() // 1_000))
        return self._answer(self.calls[-1])

    def instants(self, name: str) -> list[int]:
        """A field of every call."""
        return [parse_instant(call.body[name]) for call in self.calls]


def hourly(call: Call) -> tuple[int, bytes]:
    again = parse_instant(call.body["executeAt"]) + HOUR_US
    return 200, json.dumps({"nextExecuteAt": format_instant(again)}).encode()


async def advance(api: Api, **how: str) -> dict[str, Any]:
    status, answer = await api("dev/clock/advance", **how)
    assert status == 200, answer
    return dict(answer)


async def test_three_days_of_a_timer_that_is_rescheduled_each_hour_pass_in_a_moment(server: ServerProcess) -> None:
    api, log = Api(server), Log(hourly)
    async with Receiver(log) as receiver:
        await api("namespaces/update", name="default", secret="whsec_" + "c2VjcmV0" * 4)
        first = await api.create("hourly", receiver.url, delay="1h")
        done = await advance(api, by="3d")
    wanted = [parse_instant(first["executeAt"]) + hour * HOUR_US for hour in range(72)]
    assert log.instants("executeAt") == wanted
    assert done["steps"] == 72
    fired = log.instants("firedAt")
    # Each at its own instant: none early, and none as late as the next.
    assert all(at <= when < at + HOUR_US // 2 for at, when in zip(wanted, fired, strict=True))
    # Receivers compare the signature's instant with their own clocks.
    assert all(abs(int(call.headers["webhook-timestamp"]) - call.arrived_at // 10**6) <= 60 for call in log.calls)
    status, clock = await api("dev/clock/get")
    assert (status, parse_instant(clock["now"]) >= parse_instant(done["now"])) == (200, True)
    # The result of the last attempt is durable, and relative instants count from the moved clock.
    assert parse_instant((await api.get("hourly"))["executeAt"]) == wanted[-1] + HOUR_US
    later = await api.create("later", receiver.url, delay="1h")
    assert parse_instant(later["executeAt"]) > fired[-1]


@pytest.mark.parametrize("timer", ["polling", "engine"])
async def test_a_service_call_due_tomorrow_and_its_retries(tmp_path: Path, timer: str) -> None:
    tenant = Uuid7Source(lambda: time.time_ns() // 1_000)()
    path = f"/api/v1/tenants/{tenant}/service-calls"
    log = Log(lambda call: (503, b"") if len(log.calls) < 3 else (200, b""))
    async with serving(tmp_path / "dev", "--agent-timer", timer) as server, Receiver(log) as receiver:
        api, client = Api(server), Client(server.address)
        _, clock = await api("dev/clock/get")
        due_at = parse_instant(clock["now"]) + US_PER_DAY
        spec = {"method": "POST", "url": receiver.url, "body": {}, "retryPolicy": {"initialInterval": "3h"}}
        status, call = await client.post(path, {"name": "a", "dueAt": format_instant(due_at), "requestSpec": spec})
        assert status == 202, call
        assert (await advance(api, by="23h"))["steps"] == 0
        assert log.calls == []
        await advance(api, by="2d")
        _, detail = await client.get(f"{path}/{call['serviceCallId']}")
        client.close()
    assert (detail["status"], detail["attempts"]) == ("Succeeded", 3)
    begun = [parse_instant(execution["startedAt"]) for execution in detail["executions"]]
    assert due_at <= begun[0] < due_at + HOUR_US
    assert begun[0] + 2 * HOUR_US < begun[1] < begun[0] + 4 * HOUR_US < begun[2]


async def test_the_clock_stays_ahead_after_a_restart_and_no_other_server_takes_the_folder(
    server: ServerProcess,
) -> None:
    api, log = Api(server), Log()
    async with Receiver(log) as receiver:
        made = await api.create("a", receiver.url, delay="2d")
        before = await advance(api, by="1d")
        # The command line shows how far away an instant is by the server's clock.
        code, shown, _ = await command("timers", "get", "a", "--server", server.url)
        assert (code, "(in 23h)" in shown) == (0, True), shown
        await server.kill()
        code, _, output = await command("serve", "--port", "0", "--data-dir", str(server.data_dir))
        assert (code, "belongs to `tocsin dev`" in output) == (1, True), output
        await server.start()
        _, after = await api("dev/clock/get")
        assert parse_instant(after["now"]) >= parse_instant(before["now"])
        await advance(api, to=made["executeAt"])
        assert [call.body["timerId"] for call in log.calls] == ["a"]


async def test_the_clock_of_an_ordinary_server_cannot_be_moved(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", "--no-agent", command="serve") as server:
        for path in ("dev/clock/get", "dev/clock/advance"):
            status, answer = await Api(server)(path, by="1d")
            assert (status, answer["error"]) == (404, "ROUTE_NOT_FOUND")
        code, _, output = await command("clock", "advance", "1d", "--server", server.url)
        assert (code, "start one with `tocsin dev`" in output) == (1, True), output
    code, _, output = await command("dev", "--port", "0", "--data-dir", str(server.data_dir))
    assert (code, "has the data of `tocsin serve`" in output) == (1, True), output
    assert not (server.data_dir / MARK).exists()
