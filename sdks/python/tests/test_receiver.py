"""What a receiver answers; tests of signatures and answers are in the vectors, too."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timezone

import pytest

from tocsin_client.receiver import Firing, Receiver, done, reschedule_at
from tocsin_client.testing import firing, sign

SECRET, FORMER, OTHER = "whsec_a2V5MQ==", "whsec_a2V5Mg==", "whsec_a2V5Mw=="
FIRING = firing("größe-17", payload={"n": 1}, attempt=2)


def handled(receiver, request, handler=lambda _: done()):
    return receiver.handle(request.headers, request.body, handler)


def test_the_handler_gets_the_firing():
    seen = []

    def handler(given):
        seen.append(given)
        return done()

    request = sign(FIRING, SECRET)
    assert handled(Receiver(SECRET), request, handler).status == 200
    (given,) = seen
    assert given.body == request.body and given.traceparent is None
    assert dataclasses.replace(given, body=b"", headers={}) == FIRING


@pytest.mark.parametrize("secrets", [SECRET, [FORMER, SECRET], lambda: [SECRET, FORMER]])
def test_any_of_the_secrets(secrets):
    assert handled(Receiver(secrets), sign(FIRING, SECRET)).status == 200


def test_secrets_are_read_at_the_first_request():
    read = []
    receiver = Receiver(lambda: read.append(1) or [SECRET])
    assert not read
    handled(receiver, sign(FIRING, SECRET))
    assert read


@pytest.mark.parametrize(
    ("receiver", "status"),
    [
        (Receiver(OTHER), 503),
        (Receiver(SECRET, now=lambda: 0.0), 503),
        (Receiver(), 503),
        (Receiver(""), 503),
        (Receiver("not a secret"), 503),
        (Receiver(lambda: {}["MISSING"]), 503),
    ],
    ids=["wrong", "stale", "no secrets", "an empty secret", "an invalid secret", "a failing function"],
)
def test_a_mended_configuration_gets_another_attempt(receiver, status):
    worked = []
    assert handled(receiver, sign(FIRING, SECRET), worked.append).status == status
    assert not worked


def test_unsigned_requests_are_final():
    request = sign(FIRING, SECRET)
    del request.headers["webhook-signature"]
    assert handled(Receiver(SECRET), request).status == 401
    assert handled(Receiver(), request).status == 401
    assert handled(Receiver(unsigned=True), request).status == 200


def test_raw_bytes_only():
    request = sign(FIRING, SECRET)
    with pytest.raises(TypeError, match="raw body"):
        Receiver(SECRET).handle(request.headers, json.loads(request.body), lambda _: done())


def test_large_bodies_are_refused():
    assert Receiver(unsigned=True).handle({}, b"x" * 1_048_577, lambda _: done()).status == 413


def test_defects_are_retried(caplog):
    def defect(_):
        raise LookupError("no row")

    assert handled(Receiver(SECRET), sign(FIRING, SECRET), defect).status == 500
    assert handled(Receiver(SECRET), sign(FIRING, SECRET), lambda _: None).status == 500
    assert handled(Receiver(SECRET), sign(dataclasses.replace(FIRING, body=b"[1]"), SECRET)).status == 500
    assert "no row" in caplog.text and "the handler returned None" in caplog.text


def test_raw_bodies_have_their_envelope_in_headers():
    headers = {
        "tocsin-namespace": "n",
        "tocsin-timer-id": "gr%C3%B6%C3%9Fe%2F17",
        "tocsin-execute-at": "2027-01-31T12:00:00Z",
        "tocsin-fired-at": "2027-01-31T12:00:00.000001Z",
        "tocsin-attempt": "3",
        "webhook-id": "w",
        "traceparent": "00-1",
    }
    got = Receiver(unsigned=True).verify(headers, b"<note>")
    assert isinstance(got, Firing)
    assert (got.namespace, got.timer_id, got.attempt, got.payload, got.body) == ("n", "größe/17", 3, None, b"<note>")
    assert (got.fired_at - got.execute_at).microseconds == 1 and got.traceparent == "00-1"


def test_get_without_an_envelope():
    got = Receiver(unsigned=True).verify({"Webhook-Id": "w", "Webhook-Timestamp": "1801396800"}, b"")
    assert isinstance(got, Firing)
    assert (got.webhook_id, got.timer_id, got.attempt) == ("w", "", 0)
    assert got.fired_at == datetime(2027, 1, 31, 12, tzinfo=timezone.utc)


def test_instants_need_a_time_zone():
    with pytest.raises(ValueError, match="time zone"):
        reschedule_at(datetime(2027, 1, 31))
