"""On what condition a timer is created, and what a timer remembers of how it was."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.errors import IdempotencyConflict
from tocsin.model.instants import US_PER_DAY
from tocsin.model.redaction import redact_url
from tocsin.model.timer import NULL_PAYLOAD, CreateKey, Timer

#: Keys that a timer remembers, the newest ones: enough for a client whose requests overtake one another, and little to
#: store. A key that has been forgotten creates anew.
KEYS_MAX = 4
#: How long a finished timer remembers its keys, at least, in microseconds: longer than any client tries a request again.
KEYS_KEPT_US = US_PER_DAY


class OnConflict(StrEnum):
    """What becomes of a create when a timer of its name exists: pending, suspended, in flight, or finished and retained."""

    REPLACE = "replace"
    KEEP = "keep"
    REJECT = "reject"


class Outcome(StrEnum):
    """What a create came to: the timer is new (or replaced another); it `existed` and was kept; or the create is a
    repetition, and the timer stands as the former one, or what came after, has left it."""

    CREATED = "created"
    EXISTING = "existing"
    REPLAYED = "replayed"


class Condition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a create asks before it writes. A `key` that the existing timer was created under makes the create a repetition:
    the timer stands as it is, or IdempotencyConflict, if other things were sent under that key. Otherwise `on_conflict`
    decides. A create without a condition replaces, and reads nothing."""

    on_conflict: OnConflict = OnConflict.REPLACE
    key: CreateKey | None = None

    def is_repeated(self, timer: Timer) -> bool:
        """Whether that timer was created under this key; IdempotencyConflict if it was, with other things asked for."""
        key = self.key
        if key is None:
            return False
        for known in timer.keys:
            if known.key == key.key:
                if known.body != key.body:
                    raise IdempotencyConflict(
                        f"timer {timer.id!r} was created under this idempotency key with other contents; repeat a request "
                        "unchanged (`delay` may differ), and give another one a key of its own"
                    )
                return True
        return False

    def keys_after(self, former: Timer | None) -> tuple[CreateKey, ...]:
        """What a timer that is created on this condition remembers, in the place of `former`."""
        if self.key is None:
            return ()
        return (*(former.keys if former is not None else ()), self.key)[-KEYS_MAX:]


def slim(timer: Timer) -> Timer:
    """What is kept of a finished timer only for its keys: how it ended, and nothing that its namespace doesn't keep."""
    return msgspec.structs.replace(timer, url=redact_url(timer.url), payload=NULL_PAYLOAD, headers=None)
