"""What runs of monitored jobs report, and how long that takes."""

from __future__ import annotations

from tests.support.cases import each

from steps import World
from tocsin_client._core import running
from tocsin_client._core.session import Options
from tocsin_client._generated.models import PingMonitor
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
    world.run(running.report(world.session, Options(), dict, PingMonitor(namespace="n", id="m", event="start")))
    assert len(world.sent) > 1 and world.time - started <= 5
