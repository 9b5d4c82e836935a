"""On what condition a timer is created."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.timer import CreateKey


class OnConflict(StrEnum):
    """What becomes of a create when a timer of its name exists: pending, suspended, in flight, or finished and retained."""

    REPLACE = "replace"
    KEEP = "keep"
    REJECT = "reject"


class Condition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a create asks before it writes. A `key` that the existing timer was created under makes the create a repetition:
    the timer stands as it is, or IdempotencyConflict, if other things were sent under that key. Otherwise `on_conflict`
    decides. A create without a condition replaces, and reads nothing."""

    on_conflict: OnConflict = OnConflict.REPLACE
    key: CreateKey | None = None
