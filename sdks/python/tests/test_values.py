"""What people write for instants, durations and objects, and the errors otherwise."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from tests.support.cases import each

from steps import World, reply, timer
from tocsin_client import CreateTimer, RetryPolicy, errors
from tocsin_client._core import flows
from tocsin_client.receiver import reschedule_at, retry

AT = datetime(2027, 1, 31, 12, tzinfo=timezone.utc)


def sent(**fields):
    """The request for these fields."""
    world = World(reply(200, timer()))
    world.run(flows.create_timer(world.session, CreateTimer(namespace="n", id="a", callback_url="http://x/", **fields)))
    return world.body(0)


@each("instant", [AT, AT.astimezone(timezone(timedelta(hours=2))), "2027-01-31T12:00:00Z"])
def test_instants(instant):
    assert sent(execute_at=instant)["executeAt"] == "2027-01-31T12:00:00Z"


@each("duration", [timedelta(hours=25), "1d1h", 90_000, 90_000.0])
def test_durations(duration):
    assert sent(delay=duration)["delay"] == "1d1h"
    assert sent(callback_timeout_seconds=timedelta(seconds=2.5))["callbackTimeoutSeconds"] == 2.5


@each("policy", [RetryPolicy(max_attempts=2), {"max_attempts": 2}, {"maxAttempts": 2}])
def test_objects(policy):
    assert sent(retry_policy=policy, body={"text": "x"})["retryPolicy"] == {"maxAttempts": 2}


@each(
    "fields, message",
    [
        ({"execute_at": 1801396800}, "execute_at: must be an instant, not int; give a datetime"),
        ({"execute_at": date(2027, 1, 31)}, "execute_at: must be an instant, not date"),
        ({"delay": True}, "delay: must be a duration, not bool; give a timedelta, seconds, or text: 500ms"),
        ({"expire_after": [1]}, "expire_after: must be a duration, not list"),
        ({"retry_policy": "often"}, "retry_policy: must be an object, not str; give a RetryPolicy, or a dict"),
        ({"retry_policy": {"tries": 2}}, "retry_policy: .*'tries'; give the fields of RetryPolicy"),
        ({"headers": "a: b"}, "headers: must be an object, not str; give a dict"),
        ({"tags": "eu"}, "tags: must be a list, not str; give a list, even of one"),
    ],
)
def test_types_that_cannot_be_sent(fields, message):
    with pytest.raises(errors.InvalidArgument, match=message) as raised:
        sent(**fields)
    assert isinstance(raised.value, TypeError)


@each(
    "fields, message",
    [
        ({"execute_at": datetime(2027, 1, 31)}, "execute_at: .* has no time zone; use"),
        ({"execute_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}, "execute_at: .* is not between"),
        ({"delay": -1}, "delay: -1 s is negative"),
        ({"delay": float("nan")}, "delay: nan is not a duration"),
        ({"payload": float("nan")}, "payload: can't be written as JSON"),
        ({"payload": {"at": AT}}, "payload: .*datetime is not JSON serializable"),
        ({"payload": "\ud800"}, "payload: can't be written"),
    ],
)
def test_values_that_cannot_be_sent(fields, message):
    with pytest.raises(errors.InvalidArgument, match=message) as raised:
        sent(**fields)
    assert isinstance(raised.value, ValueError) and not isinstance(raised.value, TypeError)


def test_circular_payloads():
    payload = []
    payload.append(payload)
    with pytest.raises(errors.InvalidArgument, match="Circular"):
        sent(payload=payload)


def test_answers_take_the_same():
    assert b"2027-01-31T12:00:00Z" in reschedule_at("2027-01-31T12:00:00Z").body
    assert [retry(each).headers["retry-after"] for each in (90, "1m30s", timedelta(seconds=89.5))] == ["90"] * 3
