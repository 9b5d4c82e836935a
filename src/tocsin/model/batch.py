"""Batches of callbacks: due timers of one receiver in one request."""

from __future__ import annotations

import msgspec

#: Timers of one request: concluding them is one turn of the event loop, in which nothing else happens.
BATCH_ITEMS_MAX = 500
#: How long a due timer waits for others: at most, and by default. For as long its attempt is in flight and its slot is taken.
LINGER_US_MAX, LINGER_US_DEFAULT = 5_000_000, 100_000
#: Bytes of a request's body: as much as receivers of the client libraries take.
BATCH_BYTES_MAX = 1024 * 1024
#: How the `webhook-id` of a batch begins. It is signed, so it distinguishes a batch from the callback of one timer.
BATCH_ID_PREFIX = "batch_"


class CallbackBatch(msgspec.Struct, frozen=True, gc=False):
    """Due timers of one URL, method, headers and timeout are sent together, at most `items` in a request; the first of them
    waits at most `linger_us` for the others."""

    items: int
    linger_us: int = LINGER_US_DEFAULT
