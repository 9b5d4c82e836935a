"""What travels between modules: a message in its envelope."""

from __future__ import annotations

import msgspec


class Envelope(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """One message and where it comes from.

    `id` is a UUID v7 of its own: a message that is sent again keeps it, so that duplicates can be told. `type` names the
    payload's shape, `aggregate_id` what the message is about: messages of one aggregate stay in order. `correlation_id`
    is the same for everything that one request caused; `causation_id` is the id of the message that directly caused
    this one, None for what only time caused. `timestamp_ms`: wall clock when it was made. `payload` is JSON.
    """

    id: str
    type: str
    tenant_id: str
    aggregate_id: str
    timestamp_ms: int
    correlation_id: str
    causation_id: str | None
    payload: msgspec.Raw
