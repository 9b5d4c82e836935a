"""Once a change of a credential at one node is acknowledged, every node sends it as it is."""

from __future__ import annotations

from pathlib import Path

from tests.support.calls import Api, Inbox
from tests.support.cluster import node, running, shared_by
from tests.support.http import Receiver

PUT = {"namespace": "default", "name": "api", "type": "bearer"}


async def test_rotated_token_is_sent_by_every_node_from_the_answer_on(tmp_path: Path, postgresql_url: str) -> None:
    inbox = Inbox()
    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")]
    async with Receiver(inbox) as target, running(*servers):
        await shared_by(servers, {"one", "two"})
        apis = [Api(server) for server in servers]
        for turn in range(4):
            status, _ = await apis[turn % 2]("credentials/put", **PUT, token=f"token-{turn}")
            assert status == 200
            timers = [
                {
                    "namespace": "default",
                    "id": f"{turn}-{n}",
                    "delay": "1ms",
                    "callbackUrl": target.url,
                    "credential": "api",
                }
                for n in range(20)
            ]
            _, answer = await apis[(turn + 1) % 2]("timers/batch/create", timers=timers)
            assert all("timer" in result for result in answer["results"]), answer
            calls = (await inbox.count(20 * (turn + 1)))[20 * turn :]
            assert {call.headers["authorization"] for call in calls} == {f"Bearer token-{turn}"}
