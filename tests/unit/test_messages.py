"""Messages on their way into and out of an envelope."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from tests.support.cases import each

from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import Envelope, InvalidMessage
from tocsin.service_calls.messages import DueTimeReached, Instant, Registry, RequestSpec, SubmitServiceCall
from tocsin.testing.clock import EPOCH_US

new_id = Uuid7Source(lambda: EPOCH_US)
TENANT, CALL = new_id(), new_id()


@pytest.fixture
def registry() -> Registry:
    return Registry(new_id, lambda: EPOCH_US)


def sealed(registry: Registry) -> Envelope:
    message = DueTimeReached(CALL, Instant(EPOCH_US), Instant(EPOCH_US + 1_500))
    return registry.seal(message, tenant_id=TENANT, correlation_id="c", causation_id=None)


def test_a_payload_has_the_tenant_and_instants_as_text(registry: Registry) -> None:
    envelope = sealed(registry)
    assert msgspec.json.decode(envelope.payload) == {
        "tenantId": TENANT,
        "serviceCallId": CALL,
        "dueAt": "2027-01-15T08:00:00Z",
        "reachedAt": "2027-01-15T08:00:00.001500Z",
    }
    opened = Registry(new_id, lambda: EPOCH_US).open(envelope)
    assert opened == DueTimeReached(CALL, Instant(EPOCH_US), Instant(EPOCH_US + 1_500), tenant_id=TENANT)


@each(
    "changed, reason",
    [
        ({"tenantId": CALL}, "tenantId of the payload differs"),
        ({"tenantId": None}, "Expected `str`"),
        ({"serviceCallId": TENANT}, "serviceCallId of the payload differs"),
        ({"dueAt": EPOCH_US}, r"RFC 3339 instant.*dueAt"),
        ({"dueAt": "2027-01-15T08:00:00"}, r"no time zone.*dueAt"),
        ({"dueAtUs": EPOCH_US}, "unknown field `dueAtUs`"),
    ],
)
def test_a_payload_of_another_form_is_refused(registry: Registry, changed: dict[str, object], reason: str) -> None:
    envelope = sealed(registry)
    payload = msgspec.json.decode(envelope.payload) | changed
    other = msgspec.structs.replace(envelope, payload=msgspec.Raw(msgspec.json.encode(payload)))
    with pytest.raises(InvalidMessage, match=reason):
        registry.open(other)


def test_a_payload_without_a_tenant_is_refused(registry: Registry) -> None:
    envelope = sealed(registry)
    payload = msgspec.json.decode(envelope.payload)
    del payload["tenantId"]
    with pytest.raises(InvalidMessage, match="tenantId of the payload differs"):
        registry.open(msgspec.structs.replace(envelope, payload=msgspec.Raw(msgspec.json.encode(payload))))


def test_a_message_that_was_opened_is_kept_no_longer_than_its_envelope(registry: Registry) -> None:
    def open_one() -> None:
        spec = RequestSpec("POST", "http://x/", body=msgspec.Raw(b'"%b"' % (b"b" * 100_000)))
        message = SubmitServiceCall(CALL, "bill", spec, "f")
        envelope = registry.seal(message, tenant_id=TENANT, correlation_id="c", causation_id=None)
        assert registry.open(envelope) is registry.open(envelope)

    tracemalloc.start()
    try:
        for _ in range(200):
            open_one()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2**20
