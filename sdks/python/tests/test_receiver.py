"""What a receiver answers; tests of signatures and answers are in the vectors, too."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import hmac
import json
import tracemalloc
from datetime import datetime

import pytest
from tests.support.cases import each

from tocsin_client.receiver import Firing, Receiver, done, fail, reschedule_at
from tocsin_client.receiver._receiver import BODY_BYTES_MAX
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


@each("secrets", [SECRET, [FORMER, SECRET], lambda: [SECRET, FORMER]])
def test_any_of_the_secrets(secrets):
    assert handled(Receiver(secrets), sign(FIRING, SECRET)).status == 200


def test_secrets_are_read_at_the_first_request():
    read = []
    receiver = Receiver(lambda: read.append(1) or [SECRET])
    assert not read
    handled(receiver, sign(FIRING, SECRET))
    assert read


@each(
    "receiver, status",
    [
        (Receiver(OTHER), 503),
        (Receiver(SECRET, now=lambda: 0.0), 503),
        (Receiver(), 503),
        (Receiver(""), 503),
        (Receiver("not a secret"), 503),
        (Receiver(lambda: {}["MISSING"]), 503),
    ],
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
    assert "no row" in caplog.text and "the handler returned None" in caplog.text


def test_a_raw_body():
    request = sign(dataclasses.replace(FIRING, body=b"[1]", headers={"traceparent": "00-1"}), SECRET)
    got = Receiver(SECRET).verify(request.headers, request.body)
    assert isinstance(got, Firing)
    assert (got.timer_id, got.attempt, got.payload, got.body) == ("größe-17", 0, None, b"[1]")
    assert got.traceparent == "00-1"


def test_long_headers_are_refused_before_they_are_read():
    request = sign(FIRING, SECRET)
    request.headers["webhook-signature"] += " v1," + "A" * 10_000
    assert handled(Receiver(SECRET), request).status == 503


async def async_done(_):
    await asyncio.sleep(0)
    return done()


class Handler:
    async def __call__(self, given):
        return await async_done(given)


@each(
    "handler",
    [async_done, Handler(), functools.partial(async_done), lambda given: async_done(given)],
)
def test_what_is_awaitable_is_awaited(handler):
    request, receiver = sign(FIRING, SECRET), Receiver(SECRET)
    assert handled(receiver, request, handler).status == 200
    assert asyncio.run(receiver.handle_async(request.headers, request.body, handler)).status == 200


@pytest.fixture
def hashed(monkeypatch):
    """The keys with which bodies are hashed."""
    keys, new = [], hmac.new

    def recorded(key, *args):
        keys.append(key)
        return new(key, *args)

    monkeypatch.setattr(hmac, "new", recorded)
    return keys


def test_a_body_is_hashed_once_for_each_secret_and_not_copied(hashed):
    request = sign(dataclasses.replace(FIRING, body=b"x" * BODY_BYTES_MAX), OTHER)
    request.headers["webhook-signature"] = " ".join([request.headers["webhook-signature"]] * 10)
    hashed.clear()
    tracemalloc.start()
    try:
        assert handled(Receiver([SECRET, FORMER]), request).status == 503
        assert tracemalloc.get_traced_memory()[1] < BODY_BYTES_MAX
    finally:
        tracemalloc.stop()
    assert hashed == [b"key1", b"key2"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-timestamp", "soon"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", " ".join(["v1,AAAA"] * 11)),
        ("webhook-signature", " ".join(["v1,AAAA"] * 4_000)),
    ],
    ids=["a timestamp that is none", "a timestamp of long ago", "one signature more", "many signatures"],
)
def test_bounds_come_before_work(header, value, hashed):
    request, asked = sign(FIRING, SECRET), []
    hashed.clear()
    request.headers[header] = value
    assert handled(Receiver(lambda: asked.append(1) or SECRET), request).status == 503
    assert not asked and not hashed


@pytest.mark.filterwarnings("error")
def test_an_event_loop_is_not_blocked(caplog):
    async def run():
        return handled(Receiver(SECRET), sign(FIRING, SECRET), async_done)

    assert asyncio.run(run()).status == 500
    assert "await handle_async()" in caplog.text


def test_instants_need_a_time_zone():
    with pytest.raises(ValueError, match="time zone"):
        reschedule_at(datetime(2027, 1, 31))


def batched(*requests, payloads):
    """The request of a batch with these callbacks, whose payloads are given as JSON texts."""
    items = []
    for request, payload in zip(requests, payloads, strict=True):
        item = {"webhookId": request.headers["webhook-id"], **json.loads(request.body), "payload": "PAYLOAD"}
        items.append(json.dumps(item).replace('"PAYLOAD"', payload))
    headers = {"webhook-id": "batch_" + "0" * 32, "webhook-timestamp": "1"}
    return headers, f'{{"items": [{", ".join(items)}]}}'.encode()


@pytest.mark.parametrize("payload", ["7" * 5_000, "[" * 100_000 + "]" * 100_000])
def test_a_callback_that_can_not_be_read_takes_no_other_of_its_batch_along(payload):
    first, second, third = (sign(firing(name, payload={}), SECRET) for name in ("a", "b", "c"))
    headers, body = batched(first, second, third, payloads=["1", payload, "2"])
    seen = []
    response = Receiver(unsigned=True).handle(headers, body, lambda each: seen.append(each.payload) or done())
    assert seen == [1, 2]
    results = {each["webhookId"]: each["status"] for each in json.loads(response.body)["items"]}
    assert results.pop(second.headers["webhook-id"], 503) == 503
    assert results == {each.headers["webhook-id"]: 200 for each in (first, third)}


def test_a_callback_of_a_batch_has_its_part_of_the_request_as_it_arrived():
    requests = [sign(firing(name, payload={}), SECRET) for name in ("a", "b")]
    headers, body = batched(*requests, payloads=["1e999", '{"]": "\\"}"}'])
    seen = []
    Receiver(unsigned=True).handle(headers, body, lambda each: seen.append(each) or done())
    assert [each.payload for each in seen] == [float("inf"), {"]": '"}'}]
    assert b"[" + b", ".join(each.body for each in seen) + b"]" in body and b"1e999" in seen[0].body


def test_a_reason_is_sent_as_far_as_it_is_shown():
    assert json.loads(fail("ä" * 200).body)["reason"] == "ä" * 200
    assert json.loads(fail("ä" * 201).body)["reason"] == "ä" * 199 + "…"
