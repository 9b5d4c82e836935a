"""Whether an update that was refused after a lost answer had been made; what becomes of it is in the scenarios."""

from __future__ import annotations

from tests.support.cases import each

from tocsin_client._core.comparison import has_fields

STORED = {
    "executeAt": "2027-01-31T12:00:00.5Z", "expireAfter": "1h30m", "tags": [], "payload": {"a": [1]},
    "callbackTimeoutSeconds": 10, "headers": {"a": "b", "authorization": "[redacted]"},
    "retryPolicy": {"maxAttempts": 5, "initialInterval": "1s"},
}  # fmt: skip
RAW = {"body": {"json": {"a": 1}, "contentType": "application/json"}}


@each(
    "sent, made",
    [
        ({"executeAt": "2027-01-31T13:00:00.500000+01:00"}, True),
        ({"executeAt": "2027-01-31T12:00:00Z"}, False),
        ({"expireAfter": "90m", "callbackTimeoutSeconds": 10.0}, True),
        ({"expireAfter": None}, False),
        ({"description": None}, True),
        ({"description": "90m"}, False),
        ({"tags": []}, True),
        ({"tags": ["a"]}, False),
        ({"payload": {"a": [1]}}, True),
        ({"payload": {"a": [True]}}, False),
        ({"payload": {}}, False),
        ({"payload": None}, False),
        ({"headers": {"a": "b", "authorization": "Bearer x"}}, False),
        ({"headers": {"a": "b"}}, False),
        ({"headers": None}, False),
        ({"retryPolicy": {"maxAttempts": 5, "initialInterval": "1000ms", "maxAttemptsDuration": None}}, True),
        ({"retryPolicy": {"maxAttempts": 4}}, False),
        ({"retryPolicy": None}, False),
        ({"delay": "1h"}, False),
    ],
)
def test_fields_of_a_stored_timer(sent, made):
    assert has_fields(STORED, sent) is made


def test_a_raw_body():
    assert has_fields(RAW, {"body": {"json": {"a": 1}}})
    assert not has_fields(RAW, {"body": {"json": {"a": 1, "b": 2}}})
    assert not has_fields(RAW, {"body": {"text": "a"}})
    assert not has_fields(RAW, {"payload": None})
