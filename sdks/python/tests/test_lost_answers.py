"""What follows the lost answer of a change that is refused when it is made twice."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from steps import World, problem, reply
from tocsin_client import errors
from tocsin_client._core.comparison import has_fields
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


AT = {"createdAt": "2027-01-31T12:00:00Z", "updatedAt": "2027-01-31T12:00:00Z"}
FLOW = {"namespace": "n", "match": "m", "closeOnRetryAfter": False, "paused": False, "inFlight": 0, "waiting": 0, **AT}
CALENDAR = {
    "namespace": "n",
    "name": "c",
    "timeZone": "UTC",
    "dates": ["2027-12-25"],
    "ranges": [],
    "weekdays": [],
    **AT,
}
NAMESPACE = {
    "name": "n", "numShards": 1, "history": "off", "retention": "7d", "paused": True, "signed": False, **AT,
    "answers": "standard",
    "retryPolicy": {"maxAttempts": 1, "initialInterval": "1s", "backoffMultiplier": 2, "maxInterval": "1h"},
}  # fmt: skip


@each(
    "kind, change, stored",
    [
        (Schedules, lambda part, **how: part.create("n", "s", "http://x/", cron="0 3 * * *", **how), SCHEDULE),
        (Flows, lambda part, **how: part.put("n", "m", total={"parallelism": 1}, **how), FLOW | {"complete": True}),
        (Calendars, lambda part, **how: part.put("n", "c", dates=["2027-12-25"], **how), CALENDAR),
        (Namespaces, lambda part, **how: part.update("n", retention="168h", **how), NAMESPACE),
    ],
)
def test_a_change_of_a_version_has_succeeded_if_what_is_stored_is_the_next_one(kind, change, stored):
    stored = {**stored, "total": {"parallelism": 1}} if kind is Flows else stored
    part, world = part_of(kind, LOST, CONFLICT, reply(200, {**stored, "version": 1}))
    assert change(part, expected_version=0).version == 1
    assert len(world.sent) == 3
    for version in (2, 0):
        part, _ = part_of(kind, LOST, CONFLICT, reply(200, {**stored, "version": version}))
        with pytest.raises(errors.VersionConflict):
            change(part, expected_version=0)
    part, world = part_of(kind, CONFLICT)
    with pytest.raises(errors.VersionConflict):
        change(part, expected_version=0)


def test_a_dry_run_has_changed_nothing():
    part, _ = part_of(Schedules, LOST, CONFLICT, reply(200, {**SCHEDULE, "version": 1}))
    with pytest.raises(errors.VersionConflict):
        part.create("n", "s", "http://x/", cron="0 3 * * *", expected_version=0, dry_run=True)


def test_a_schedule_that_begins_paused():
    assert has_fields({"status": "paused"}, {"paused": True})
    assert not has_fields({"status": "active"}, {"paused": True})


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
