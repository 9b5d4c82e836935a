"""What runs of monitored jobs report, and how long that takes."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.cases import each

from steps import World
from tocsin_client import AsyncClient, Client
from tocsin_client._core import running
from tocsin_client._core.session import Options
from tocsin_client._sync.monitors import Monitors
from tocsin_client._sync.runner import Runner
from tocsin_client.errors import TransportError


def ending(error):
    sent = running.ending("n", "m", error).to_json()
    return {name: value for name, value in sent.items() if name not in ("namespace", "id")}


@each(
    "error, expected",
    [
        (None, {"event": "success"}),
        (SystemExit(), {"event": "success"}),
        (SystemExit(0), {"event": "success", "exitCode": 0}),
        (SystemExit(3), {"event": "fail", "exitCode": 3}),
        (SystemExit(True), {"event": "fail", "exitCode": 1}),
        (SystemExit(-1), {"event": "fail", "exitCode": 255}),
        (SystemExit("no disk"), {"event": "fail", "body": "SystemExit: no disk"}),
        (KeyError("a"), {"event": "fail", "body": "KeyError: 'a'"}),
        (OSError("f\udcff"), {"event": "fail", "body": "OSError: f?"}),
    ],
)
def test_what_the_end_of_a_job_is_reported_as(error, expected):
    assert ending(error) == expected


def test_a_server_that_is_not_reached_delays_a_job_for_seconds_only():
    refused = TransportError("refused", maybe_done=False)
    world = World(*[lambda _: refused] * 1_000)
    started = world.time
    with Monitors(Runner(world.session, world, Options())).run("m"):
        assert len(world.sent) > 1 and world.time - started <= 5


def test_a_hook_that_fails_does_not_keep_a_job_from_running(caplog):
    def hook(_headers):
        raise LookupError("no trace")

    with Client("http://127.0.0.1:1", on_request=hook) as client, client.monitors.run("m"):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        f"report {event} to monitor default/m not delivered: LookupError('no trace')" for event in ("start", "success")
    ]


@pytest.mark.filterwarnings("ignore:Exception ignored", "ignore:unclosed")  # each loop ends with a connection
def test_a_job_is_reported_in_each_event_loop(server, caplog):
    client = AsyncClient(server.url)
    with server.client() as other:
        other.monitors.put("default", "loops", every="1h")

    @client.monitors.watch("loops")
    async def job():
        return "done"

    for _ in range(3):
        assert asyncio.run(job()) == "done"
    assert not caplog.records, "each report is delivered"
    assert len(client._runner.transport._sessions) == 1, "those of the ended loops are closed"

    async def again():
        await client.close()
        return await job()

    assert asyncio.run(again()) == "done"
    asyncio.run(client.close())
    assert client._runner.transport._sessions == {}
