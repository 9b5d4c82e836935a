"""Quotas of namespaces: what nodes report to one another of their use, and that one has refused something."""

from __future__ import annotations

import msgspec

from tocsin.ports.event import Counter
from tocsin.ports.observer import Event


class QuotaUse(msgspec.Struct, frozen=True, array_like=True):
    """What a node has of a namespace with quotas: pending timers in its shards, None before it has counted them; when the
    first of these counts was made, by its clock (0: none was needed); and the creates a second that it has admitted,
    averaged over some seconds.

    Nodes of different releases exchange it: new fields are only added at the end, with a default.
    """

    pending: int | None
    counted_at: int
    creates_per_second: float


class QuotaRefused(Event, frozen=True):
    """A quota of a namespace refused a create, or a payload. `quota` is pending, createsPerSecond or payloadBytes."""

    namespace: str
    quota: str
    counter = Counter(
        "tocsin_quota_refusals",
        "Creates and payloads that a quota of their namespace refused: pending, createsPerSecond, payloadBytes.",
        ("namespace", "quota"),
    )
