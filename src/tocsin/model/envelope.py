"""The envelope of the messages that modules exchange."""

from __future__ import annotations

import msgspec


class Envelope(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """One message and its origin.

    `id` is a UUID v7; a message that is sent again keeps it, so that duplicates are recognised. `type` names the payload's
    schema, `aggregate_id` what the message is about: messages of one aggregate stay in order. `correlation_id` is the same
    for everything that one request caused; `causation_id` is the id of the message that directly caused this one, None if a
    due time caused it. `timestamp_ms` is the wall clock when the message was created. `payload` is JSON."""

    id: str
    type: str
    tenant_id: str
    aggregate_id: str
    timestamp_ms: int
    correlation_id: str
    causation_id: str | None
    payload: msgspec.Raw

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Type, tenant, aggregate and correlation id, by which events name the message."""
        return self.type, self.tenant_id, self.aggregate_id, self.correlation_id
