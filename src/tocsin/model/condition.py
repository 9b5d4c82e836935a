"""Conditional creates: what happens if the timer exists, and the idempotency keys that a timer remembers."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.debounce import Debounce
from tocsin.model.errors import IdempotencyConflict
from tocsin.model.instants import US_PER_DAY
from tocsin.model.redaction import redact_url
from tocsin.model.timer import NULL_PAYLOAD, CreateKey, Timer

#: Idempotency keys that a timer remembers, the newest ones: enough for a client whose requests overtake one another, and
#: little to store. A create under a forgotten key is a new create.
KEYS_MAX = 4
#: How long a finished timer remembers its keys at least, in microseconds: longer than clients retry a request.
KEYS_KEPT_US = US_PER_DAY


class OnConflict(StrEnum):
    """What a create does when a timer of its id exists: pending, suspended, in flight, or finished and retained. `debounce`:
    it joins the creates that wait with that timer, if it is one of them; otherwise it replaces it."""

    REPLACE = "replace"
    KEEP = "keep"
    REJECT = "reject"
    DEBOUNCE = "debounce"


class Outcome(StrEnum):
    """The outcome of a create: `created`, the timer is new or has replaced another; `existing`, the existing timer was kept;
    `replayed`, the create repeats a former one, and the timer stays as it is now."""

    CREATED = "created"
    EXISTING = "existing"
    REPLAYED = "replayed"


class Condition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a create checks before it writes.

    If the existing timer was created under the same `key`, the create is a repetition: the timer stays as it is, or the
    create fails with IdempotencyConflict if its contents differ. Otherwise `on_conflict` decides. A create without a
    condition replaces an existing timer without reading it.

    `first_try`: the sender has not sent the key before, so the store need not be asked for it. `debounce` is set with
    `OnConflict.DEBOUNCE`, and only then."""

    on_conflict: OnConflict = OnConflict.REPLACE
    key: CreateKey | None = None
    first_try: bool = False
    debounce: Debounce | None = None

    @property
    def reads(self) -> bool:
        """Whether it depends on what the store knows of the timer, and not only on what its owner has in memory."""
        return not self.first_try or self.on_conflict is not OnConflict.REPLACE

    def is_repeated(self, timer: Timer) -> bool:
        """Whether that timer was created under this key. Raises IdempotencyConflict if it was, with other contents."""
        key = self.key
        if key is None:
            return False
        for known in timer.keys:
            if known.key == key.key:
                if known.body != key.body:
                    raise IdempotencyConflict(
                        f"timer {timer.id!r} was created under this idempotency key with other contents; repeat a request "
                        "unchanged (`delay` may differ), and use another key for another request"
                    )
                return True
        return False

    def keys_after(self, former: Timer | None) -> tuple[CreateKey, ...]:
        """The keys of a timer that is created on this condition and replaces `former`, or joins it."""
        known = former.keys if former is not None else ()
        if self.debounce is not None:
            return (known if self.key is None else (*known, self.key))[-self.debounce.keys_max :]
        return () if self.key is None else (*known, self.key)[-KEYS_MAX:]


def slim(timer: Timer) -> Timer:
    """What is kept of a finished timer only for its idempotency keys: how it ended, without URL secrets, payload, headers and
    body."""
    return msgspec.structs.replace(
        timer, url=redact_url(timer.url), payload=NULL_PAYLOAD, headers=None, body=None, reduced=True
    )
