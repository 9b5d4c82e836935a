"""What follows the lost answer of a change that can't be made twice."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from steps import World, problem, reply
from tocsin_client import errors
from tocsin_client._core.session import Options
from tocsin_client._sync.calendars import Calendars
from tocsin_client._sync.flows import Flows
from tocsin_client._sync.monitors import Monitors
from tocsin_client._sync.namespaces import Namespaces
from tocsin_client._sync.runner import Runner
from tocsin_client._sync.schedules import Schedules

LOST = errors.TransportError("reset", maybe_done=True)
CONFLICT = problem(409, "VERSION_CONFLICT")
SCHEDULE = {
    "namespace": "n", "id": "s", "scheduleUuid": "u", "shardId": 0, "status": "active", "sentence": "", "counts": {},
    "nextInstants": [], "missed": {}, "triggersWaiting": 0, "backfillsWaiting": 0, "replaysWaiting": 0, "jitter": "0s",
    "catchUp": "none", "pauseAfterFailures": 0, "only": [], "skip": [], "onSkipped": "skip", "skippedInstants": [],
    "callbackUrl": "http://x/", "method": "POST", "headers": {}, "callbackTimeoutSeconds": 10, "tags": [],
    "createdAt": "2027-01-31T12:00:00Z", "updatedAt": "2027-01-31T12:00:00Z", "version": 4, "cron": "0 3 * * *",
}  # fmt: skip


def part_of(kind, *script):
    world = World(*script)
    return kind(Runner(world.session, world, Options())), world


def test_an_update_of_a_version_has_succeeded_if_the_schedule_has_what_was_sent():
    schedules, world = part_of(Schedules, LOST, CONFLICT, reply(200, SCHEDULE))
    assert schedules.update("n", "s", cron="0 3 * * *", expected_version=3).version == 4
    assert world.body(1)["expectedVersion"] == 3
    schedules, _ = part_of(Schedules, LOST, CONFLICT, reply(200, SCHEDULE))
    with pytest.raises(errors.VersionConflict):
        schedules.update("n", "s", cron="0 4 * * *", expected_version=3)


@each(
    "kind, change",
    [
        (Schedules, lambda part, **more: part.create("n", "s", "http://x/", every="1h", **more)),
        (Flows, lambda part, **more: part.put("n", "m", **more)),
        (Calendars, lambda part, **more: part.put("n", "c", **more)),
        (Namespaces, lambda part, **more: part.update("n", paused=True, **more)),
        (Monitors, lambda part, **more: part.put("n", "m", schedule="s", **more)),
    ],
)
def test_a_change_of_a_version_is_not_repeated(kind, change):
    """The second would be refused for what the first has changed."""
    part, world = part_of(kind, LOST, CONFLICT)
    with pytest.raises(errors.TransportError) as raised:
        change(part, expected_version=0)
    assert raised.value.maybe_done and len(world.sent) == 1
    part, world = part_of(kind, LOST, problem(400, "INVALID_INPUT"))
    with pytest.raises(errors.InvalidInput):
        change(part)
    assert len(world.sent) == 2


def test_a_put_of_a_monitor_is_not_repeated():
    """Only the answer that creates it shows its URL."""
    monitors, world = part_of(Monitors, LOST, problem(400, "INVALID_INPUT"))
    with pytest.raises(errors.TransportError) as raised:
        monitors.put("n", "m", every="1h")
    assert raised.value.maybe_done and len(world.sent) == 1
    with pytest.raises(errors.InvalidInput):
        monitors.put("n", "m", every="1h")
    monitors, world = part_of(Monitors, LOST, problem(400, "INVALID_INPUT"))
    with pytest.raises(errors.InvalidInput):
        monitors.put("n", "m", every="1h", expected_version=1, dry_run=True)
