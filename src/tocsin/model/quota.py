"""Quotas of a namespace: how much its clients may create, send, and have pending."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tocsin.model.errors import QuotaExceeded

#: The highest value of a quota: more than a server could hold.
QUOTA_MAX = 1_000_000_000


class Quota(StrEnum):
    """The quotas, by their names in the API."""

    PENDING = "pending"
    CREATES_PER_SECOND = "createsPerSecond"
    PAYLOAD_BYTES = "payloadBytes"


class Quotas(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The quotas of a namespace; None: there is none of that kind. `pending` limits its pending timers, without schedules and
    notifications; `creates_per_second` the timers and schedules that its clients create, and their puts of monitors;
    `payload_bytes` one payload, or one raw body."""

    pending: int | None = None
    creates_per_second: int | None = None
    payload_bytes: int | None = None

    def changed(self, changes: Mapping[str, int | None] | None) -> Quotas | None:
        """The quotas with these changes by field, of which None removes a quota; None removes all. None if none is left."""
        changed = NO_QUOTAS if changes is None else msgspec.structs.replace(self, **changes)
        return None if changed == NO_QUOTAS else changed


NO_QUOTAS = Quotas()


class Room(NamedTuple):
    """How many more timers may become pending in a namespace, and its quota of them."""

    left: int
    quota: int


def no_room(namespace: str, quota: int) -> QuotaExceeded:
    """The refusal of a create that finds too many timers pending."""
    return QuotaExceeded(
        f"namespace {namespace!r} has as many pending timers as its quota {Quota.PENDING} allows: {quota}; nothing was "
        "written; wait until some have ended, cancel some, or have the quota raised (namespaces/update)"
    )
