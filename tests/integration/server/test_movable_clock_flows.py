"""`tocsin dev`: what the limits of flows hold leaves as they let it by the moved clock, as it would have on those days."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

from tests.integration.server.test_movable_clock import HOUR_US, Log, advance, serving
from tests.support.calls import Api
from tests.support.http import Client, Receiver
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant

MINUTE_US = HOUR_US // 60


async def put_flow(api: Api, match: str, **limits: Any) -> None:
    status, answer = await api("flows/put", namespace="default", match=match, **limits)
    assert status == 200, answer


async def now_us(api: Api) -> int:
    _, clock = await api("dev/clock/get")
    return parse_instant(clock["now"])


async def waiting(api: Api, match: str) -> int:
    _, flow = await api("flows/get", namespace="default", match=match)
    return int(flow["waiting"])


async def test_timers_leave_at_the_rate_of_their_flow(tmp_path: Path) -> None:
    log = Log()
    async with serving(tmp_path / "dev", "--no-agent") as server, Receiver(log) as receiver:
        api = Api(server)
        await put_flow(api, "vendor", perKey={"rate": {"count": 10, "per": "1m"}, "burst": 5})
        due = [
            parse_instant((await api.create(f"t{i}", receiver.url, delay="1h", flowKey="vendor"))["executeAt"])
            for i in range(40)
        ]
        await advance(api, to=format_instant(due[-1] + MINUTE_US))
        # Five at once, and one each six seconds.
        assert len(log.calls) in range(14, 17)
        assert await waiting(api, "vendor") == 40 - len(log.calls)
        # Nothing more falls due.
        assert 24 <= (await advance(api, by="1h"))["steps"] <= 30
        assert await waiting(api, "vendor") == 0
    fired = log.instants("firedAt")
    assert sorted(call.body["timerId"] for call in log.calls) == sorted(f"t{i}" for i in range(40))
    # In no minute more than the burst and what the rate adds.
    assert all(late - early > MINUTE_US - 2_000_000 for early, late in zip(fired, fired[15:], strict=False))
    assert 34 * MINUTE_US < 10 * (fired[-1] - fired[0]) < 36 * MINUTE_US


async def test_a_jump_leaves_what_its_flow_does_not_let_begin_yet(tmp_path: Path) -> None:
    log = Log()
    async with serving(tmp_path / "dev", "--no-agent") as server, Receiver(log) as receiver:
        api = Api(server)
        await put_flow(api, "tenant:", total={"rate": {"count": 1, "per": "1h"}, "burst": 2})
        for i in range(4):
            await api.create(f"t{i}", receiver.url, delay="1h", flowKey=f"tenant:{i}")
        await advance(api, by="2d", mode="jump")
        await advance(api, by="1s")
        # As after a downtime: the burst.
        assert len(log.calls) == 2
        await advance(api, by="2h")
        assert len(log.calls) == 4


async def test_a_flow_opens_when_its_pause_ends(tmp_path: Path) -> None:
    log = Log()
    async with serving(tmp_path / "dev", "--no-agent") as server, Receiver(log) as receiver:
        api = Api(server)
        for match in ("soon", "never"):
            await put_flow(api, match, perKey={"parallelism": 1})
        until = await now_us(api) + 5 * HOUR_US
        await api("flows/pause", namespace="default", match="soon", until=format_instant(until))
        await api("flows/pause", namespace="default", match="never")
        for i in range(3):
            await api.create(f"t{i}", receiver.url, delay="1h", flowKey="soon")
        await api.create("held", receiver.url, delay="1h", flowKey="never")
        await advance(api, by="4h")
        assert log.calls == []
        # One after another, all within one step.
        assert (await advance(api, by="2h"))["steps"] == 1
        assert sorted(call.body["timerId"] for call in log.calls) == ["t0", "t1", "t2"]
        assert all(until <= at < until + MINUTE_US for at in log.instants("firedAt"))
        await advance(api, by="30d")
        assert len(log.calls) == 3
        await api("flows/resume", namespace="default", match="never")
        await advance(api, by="1s")
        assert log.calls[-1].body["timerId"] == "held"


class Asking(Receiver):
    """Asks for half an hour with each 429."""

    more_headers: ClassVar = {429: b"retry-after: 1800\r\n"}


async def test_a_flow_that_a_receiver_has_closed_opens_at_the_instant_that_it_has_asked_for(tmp_path: Path) -> None:
    log = Log(lambda call: (429 if len(log.calls) == 1 else 200, b""))
    async with serving(tmp_path / "dev", "--no-agent") as server, Asking(log) as receiver:
        api = Api(server)
        await put_flow(api, "vendor", perKey={"parallelism": 1}, closeOnRetryAfter=True)
        for i in range(3):
            await api.create(f"t{i}", receiver.url, delay="1h", flowKey="vendor")
        await advance(api, by="80m")
        assert len(log.calls) == 1
        await advance(api, by="20m")
    assert len(log.calls) == 4
    fired = log.instants("firedAt")
    assert all(30 * MINUTE_US <= at - fired[0] < 31 * MINUTE_US for at in fired[1:])


async def test_service_calls_leave_at_the_rate_of_their_flow(tmp_path: Path) -> None:
    log = Log()
    tenant = Uuid7Source(lambda: time.time_ns() // 1_000)()
    path = f"/api/v1/tenants/{tenant}/service-calls"
    async with serving(tmp_path / "dev") as server, Receiver(log) as receiver:
        api, client = Api(server), Client(server.address)
        await put_flow(api, "vendor", perKey={"rate": {"count": 4, "per": "1h"}})
        # A limit begins without tokens.
        await advance(api, by="1h")
        for i in range(6):
            spec = {"method": "POST", "url": receiver.url, "body": {"call": i}}
            status, call = await client.post(path, {"name": f"c{i}", "flowKey": "vendor", "requestSpec": spec})
            assert status == 202, call
        await advance(api, by="1m")
        assert len(log.calls) == 1
        await advance(api, by="1h")
        assert len(log.calls) == 5
        await advance(api, by="1h")
        assert sorted(call.body["call"] for call in log.calls) == list(range(6))
        client.close()
