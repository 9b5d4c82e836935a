"""Any node explains a timer, by what the owner of its shard answers."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client
from tests.support.scripted import Reply, ScriptedReceiver

TIMERS = 20


async def test_every_node_explains_timers_of_others(tmp_path: Path, postgresql_url: str) -> None:
    one, two = servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")]
    answer = asyncio.Event()
    async with ScriptedReceiver({"d": [Reply(200, until=answer)]}) as receiver, running(*servers):
        await shared_by(servers, {"one", "two"})

        async def explained(number: int) -> dict[str, Any]:
            status, found = await asking.post(
                "/api/v1/timers/explain", {"namespace": "default", "timerId": f"t{number}"}
            )
            assert status == 200, found
            return dict(found)

        asking = Client(one.address)
        timers = [
            {"namespace": "default", "id": f"t{number}", "delay": "2m", "callbackUrl": "http://127.0.0.1:9/"}
            for number in range(TIMERS)
        ]
        assert (await asking.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def known_to_be_in_memory() -> bool:
            found = [await explained(number) for number in range(TIMERS)]
            known = {each["owner"] for each in found if "is in memory" in each["sentence"]}
            return known == {"one", "two"} and {each["state"] for each in found} == {"scheduled"}

        # Only the owner knows that.
        await until(known_to_be_in_memory)

        async def listed() -> dict[str, dict[str, Any]]:
            wanted = {"namespace": "*", "idPrefix": "d", "explain": True}
            status, page = await asking.post("/api/v1/timers/list", wanted)
            assert status == 200, page
            return {timer["id"]: timer["explanation"] for timer in page["timers"]}

        async def all_in_flight() -> bool:
            found = (await listed()).values()
            return {(each["state"], each["owner"]) for each in found} == {("firing", "one"), ("firing", "two")}

        due = [
            {**each, "id": each["id"].replace("t", "d"), "delay": "0s", "callbackUrl": receiver.url("d"),
             "callbackTimeoutSeconds": 60}
            for each in timers
        ]  # fmt: skip
        assert (await asking.post("/api/v1/timers/batch/create", {"timers": due}))[0] == 200
        await until(all_in_flight)
        of_two = [number for number in range(TIMERS) if (await explained(number))["owner"] == "two"]
        assert two.process is not None
        two.process.send_signal(signal.SIGSTOP)
        try:
            found = await explained(of_two[0])
            # Unless the other node has taken the shard over already, or is about to.
            assert found.get("owner") != "two" or "two could not be asked" in found["sentence"], found
            unknown = [each for each in (await listed()).values() if each.get("owner") == "two"]
            assert {each["state"] for each in unknown} <= {"unknown"}
            # It is the node that has been silent since then, and not each timer.
            assert len({each["since"] for each in unknown}) <= 1
        finally:
            two.process.send_signal(signal.SIGCONT)
        answer.set()
        asking.close()
