"""Debounced creates: those of one id within a window are one firing, a delay after the last of them."""

from __future__ import annotations

import msgspec

#: Payloads that a window may collect.
COLLECT_MAX = 100
#: Bytes of all collected payloads together, as one JSON array.
COLLECTION_BYTES_MAX = 100 * 1024
#: Idempotency keys that a debounced timer remembers at least, the newest ones.
DEBOUNCED_KEYS_MAX = 16


class Debounce(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a debounced create asks for, in microseconds: the timer fires `delay_us` after the latest create, and at the
    latest `max_delay_us` after the first one of its window. `collect`: its payload becomes an array of those of all creates
    of the window, at most as many as this; 0: it is that of the latest create."""

    delay_us: int
    max_delay_us: int
    collect: int = 0

    @property
    def keys_max(self) -> int:
        """The idempotency keys that the timer remembers: that of each payload that it can have, if it collects them."""
        return max(DEBOUNCED_KEYS_MAX, self.collect)


class DebounceWindow(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a debounced timer knows of the creates that one firing of it stands for. Instants are microseconds, by the clocks
    of the shard's owners.

    The first of the `creates` was made at `first_at`. The timer fires at `latest_at` at the latest: the longest delay of each
    create counts. `collected` payloads are in the timer's, a JSON array; 0: its payload is that of the latest create. It
    fires at `earliest_at` at the earliest: until then, an attempt may be under way that has payloads which this window has
    taken over."""

    first_at: int
    latest_at: int
    creates: int = 1
    collected: int = 0
    earliest_at: int = 0
