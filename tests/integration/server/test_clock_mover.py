"""The clock of `tocsin dev` within the process: where it halts, what it refuses to serve, and what must not happen during a
move."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http import Receiver
from tocsin.model.errors import ClockHalted, ConfigError
from tocsin.model.instants import US_PER_DAY, format_instant, parse_instant
from tocsin.ports.clock import AdvanceMode
from tocsin.ports.observer import DispatchPaused
from tocsin.ports.store import Member, Store
from tocsin.server.clock_mover import DevClock
from tocsin.server.dev_folder import MARK, open_dev_folder, refuse_dev_folder
from tocsin.server.node import Server
from tocsin.settings import load_settings

HOUR_US = US_PER_DAY // 24


@asynccontextmanager
async def serving(folder: Path, **limits: int) -> AsyncIterator[tuple[Server, DevClock]]:
    # Results that nobody waits for are written long after the tests.
    settings = load_settings(
        {"port": 0, "data_dir": folder / "dev", "shards": 1, "agent_enabled": False, "commit_interval": "60s"}
    )
    dev = DevClock(open_dev_folder(settings), settings, **limits)
    server = Server(settings, dev=dev)
    await server.start()
    try:
        yield server, dev
    finally:
        await server.stop()


async def create(server: Server, url: str, **more: Any) -> None:
    body = {"namespace": "default", "id": "a", "callbackUrl": url, "delay": "1h", **more}
    async with httpx.AsyncClient(base_url=server.url) as client:
        assert (await client.post("/api/v1/timers/create", json=body)).status_code == 200


class CallsAgain:
    """Asks for the next call so long after each instant; negative: for one that has passed."""

    def __init__(self, after_us: int) -> None:
        self.after_us = after_us
        self.instants: list[int] = []
        self.fired: list[int] = []

    def __call__(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        self.instants.append(parse_instant(body["executeAt"]))
        self.fired.append(parse_instant(body["firedAt"]))
        return 200, json.dumps({"nextExecuteAt": format_instant(self.instants[-1] + self.after_us)}).encode()


async def test_a_jump_makes_all_that_was_due_on_the_way_late(tmp_path: Path) -> None:
    again, begun_us = CallsAgain(HOUR_US), 0
    async with serving(tmp_path) as (server, dev), Receiver(again) as receiver:
        await create(server, receiver.url)
        begun_us = dev.read().now_us
        assert (await dev.advance(AdvanceMode.JUMP, by_us=US_PER_DAY))[1] == 0
        # What the jump has left to be done.
        await dev.advance(AdvanceMode.STEP, by_us=0)
    assert len(again.instants) >= 23
    assert min(again.fired) >= begun_us + US_PER_DAY


async def test_retries_of_hours_and_other_timers_come_in_their_order(tmp_path: Path) -> None:
    called: list[tuple[str, int]] = []

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        called.append((body["timerId"], parse_instant(body["firedAt"])))
        return 503 if body["timerId"] == "down" else 200, b""

    policy = {"maxAttempts": 4, "initialInterval": "4h", "backoffMultiplier": 1}
    async with serving(tmp_path) as (server, dev), Receiver(answer) as receiver:
        await create(server, receiver.url, id="down", delay="1m", retryPolicy=policy)
        await create(server, receiver.url, id="between", delay="6h")
        await create(server, receiver.url, id="after", delay="2d")
        assert (await dev.advance(AdvanceMode.STEP, by_us=US_PER_DAY))[1] == 5
    assert [timer for timer, _ in called] == ["down", "down", "between", "down", "down"]
    fired = [at for timer, at in called if timer == "down"]
    # Up to a tenth of the delay is left out at random.
    assert all(3.5 * HOUR_US < after - before < 4.1 * HOUR_US for before, after in pairwise(fired))


async def test_a_monitor_of_a_nightly_schedule_adds_a_few_steps_a_night_and_reports_in_time(tmp_path: Path) -> None:
    reported: list[tuple[str, int]] = []
    nights = 0

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        nonlocal nights
        if "type" in body:
            reported.append((body["type"], parse_instant(body["timestamp"])))
            return 200, b""
        nights += 1
        # The second night fails, the fourth takes two hours.
        return 503 if nights in (2, 3, 5) else 200, b""

    noon_us = parse_instant("2099-05-04T12:00:00Z")
    policy = {"maxAttempts": 2, "initialInterval": "2h", "backoffMultiplier": 1}
    async with serving(tmp_path) as (server, dev), Receiver(answer) as receiver:
        await dev.advance(AdvanceMode.JUMP, to_us=noon_us)
        async with httpx.AsyncClient(base_url=server.url) as client:
            for path, body in (
                ("schedules/create", {"callbackUrl": receiver.url, "cron": "0 0 * * *", "retryPolicy": policy}),
                ("monitors/put", {"schedule": "nightly", "grace": "1h", "onLate": {"url": receiver.url}}),
            ):
                fields = {"namespace": "default", "id": "nightly", **body}
                response = await client.post(f"/api/v1/{path}", json=fields)
                assert response.status_code == 200, response.text
        _, steps = await dev.advance(AdvanceMode.STEP, to_us=noon_us + 20 * US_PER_DAY)
    assert nights == 22
    assert steps < 10 * 20
    nights_us = [noon_us + HOUR_US * (12 + 24 * night) for night in range(20)]
    late, failed, again = (
        at - night for (_, at), night in zip(reported, (nights_us[1], nights_us[1], nights_us[3]), strict=True)
    )
    assert [kind for kind, _ in reported] == ["monitor.late", "monitor.failed", "monitor.late"]
    assert HOUR_US < late < HOUR_US + HOUR_US // 60
    assert 1.7 * HOUR_US < failed < 4.1 * HOUR_US
    assert HOUR_US < again < HOUR_US + HOUR_US // 60


async def test_refused_advances_state_the_reason(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _), httpx.AsyncClient(base_url=server.url) as client:

        async def refused(**how: str) -> tuple[int, list[tuple[str, str]]]:
            answer = await client.post("/api/v1/dev/clock/advance", json=how)
            return answer.status_code, [(error["path"], error["reason"][:24]) for error in answer.json()["errors"]]

        assert await refused(to="2020-01-01T00:00:00Z") == (400, [("to", "has passed: the clock sh")])
        assert await refused(by="200000d") == (400, [("by", "is too far: the clock ca")])
        assert await refused(by="soon") == (400, [("by", "is not a duration; write")])
        assert await refused() == (400, [("", "send exactly one of by, ")])
        assert await refused(by="1d", to="2050-01-01T00:00:00Z") == (400, [("", "send exactly one of by, ")])
        assert (await refused(by="1d", mode="fly"))[0] == 400


async def test_one_call_makes_a_limited_number_of_steps_and_the_next_one_goes_on(tmp_path: Path) -> None:
    again = CallsAgain(HOUR_US)
    async with serving(tmp_path, steps_max=3) as (server, dev), Receiver(again) as receiver:
        await create(server, receiver.url)
        with pytest.raises(ClockHalted, match=r"after 3 steps and shows .*: more is due .*; advance again"):
            await dev.advance(AdvanceMode.STEP, by_us=5 * HOUR_US + HOUR_US // 2)
        assert len(again.instants) == 3
        assert again.instants[-1] <= dev.read().now_us < again.instants[-1] + HOUR_US // 2
        reading, steps = await dev.advance(AdvanceMode.STEP, to_us=again.instants[0] + 5 * HOUR_US - 1)
        assert (steps, len(again.instants)) == (2, 5)
        assert reading.offset_us == dev.folder.offset_us


async def test_what_was_answered_is_durable_before_the_clock_goes_on(tmp_path: Path) -> None:
    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        return 200, b""

    async with serving(tmp_path) as (server, dev), Receiver(answer) as receiver:
        await create(server, receiver.url)
        assert (await dev.advance(AdvanceMode.STEP, by_us=2 * HOUR_US))[1] == 1
        async with httpx.AsyncClient(base_url=server.url) as client:
            found = await client.post("/api/v1/timers/get", json={"namespace": "default", "timerId": "a"})
        assert found.json()["status"] == "completed"


async def test_what_comes_to_no_end_halts_the_clock(tmp_path: Path) -> None:
    again = CallsAgain(-HOUR_US)
    # Long enough for what comes to an end before it, on a busy machine.
    async with serving(tmp_path, patience_us=3_000_000) as (server, dev), Receiver(again) as receiver:
        await create(server, receiver.url)
        with pytest.raises(ClockHalted, match=r"after 1 steps .*: not at rest within 3s: "):
            await dev.advance(AdvanceMode.STEP, by_us=US_PER_DAY)
        # It stands where this began.
        assert dev.read().now_us < again.instants[0] + HOUR_US
        reading, _ = await dev.advance(AdvanceMode.JUMP, by_us=US_PER_DAY)
        assert reading.now_us >= again.instants[0] + US_PER_DAY


async def test_the_clock_waits_for_a_heartbeat_before_it_moves(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, dev):
        assert server.engine is not None
        store: Store = server.engine.context.store
        began, release, paused = asyncio.Event(), asyncio.Event(), []
        server.engine.context.observe = lambda event: (
            paused.append(event) if isinstance(event, DispatchPaused) else None
        )
        heartbeat = store.heartbeat

        async def slow(member: Member) -> int:
            began.set()
            await release.wait()
            return await heartbeat(member)

        store.heartbeat = slow  # type: ignore[method-assign]
        beat = asyncio.create_task(server.engine.supervisor.lease.beat())
        await began.wait()
        moved = asyncio.create_task(dev.advance(AdvanceMode.JUMP, by_us=US_PER_DAY))
        # Long enough for a move that would not wait.
        await asyncio.wait([moved], timeout=0.2)
        release.set()
        await asyncio.gather(beat, moved)
        # Read on both sides of the move, this node's clock would have seemed to be a day off.
        assert paused == []


def refused(folder: Path, **more: Any) -> str:
    with pytest.raises(ConfigError) as error:
        open_dev_folder(load_settings({"data_dir": folder, **more}))
    return str(error.value)


def test_what_others_could_share_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    assert "host: `tocsin dev` listens on this machine only" in refused(folder, host="0.0.0.0")
    assert "ui.origins of other machines" in refused(folder, ui_origins=["https://tocsin.example"])
    assert "leave out TOCSIN_STORE" in refused(folder, store="postgresql://db.internal/tocsin")
    assert "leave out TOCSIN_AGENT_DATABASE" in refused(folder, agent_database="postgresql://db.internal/tocsin")
    assert "leave out TOCSIN_BROKER" in refused(folder, broker="nats://db.internal:4222")
    assert "leave out TOCSIN_WORKERS" in refused(folder, workers=2, store="postgresql://db.internal/tocsin")
    assert not folder.exists()


def test_a_folder_is_marked_once_and_keeps_how_far_its_clock_is_ahead(tmp_path: Path) -> None:
    settings = load_settings({"data_dir": tmp_path / "dev"})
    opened = open_dev_folder(settings)
    opened.keep(5 * HOUR_US)
    assert open_dev_folder(settings).offset_us == 5 * HOUR_US
    assert (tmp_path / "dev" / MARK).stat().st_mode & 0o077 == 0
    (tmp_path / "dev" / MARK).write_text("{")
    assert "remove the folder" in refused(tmp_path / "dev")
    served = tmp_path / "data"
    served.mkdir()
    (served / "agent.db").touch()
    assert "has the data of `tocsin serve`" in refused(served)


def test_a_server_that_names_data_in_a_marked_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    open_dev_folder(load_settings({"data_dir": folder}))
    for field, settings in {
        "data_dir": load_settings({"data_dir": folder}),
        "store": load_settings({"data_dir": tmp_path, "store": f"sqlite:///{folder / 'tocsin.db'}"}),
        "agent.database": load_settings({"data_dir": tmp_path, "agent_database": f"sqlite:///{folder / 'agent.db'}"}),
    }.items():
        with pytest.raises(ConfigError, match=rf"^{field}: .* belongs to `tocsin dev`"):
            refuse_dev_folder(settings)
    refuse_dev_folder(load_settings({"data_dir": tmp_path}))
