"""The HTTP requests and responses about batches of callbacks: their structs and their conversion."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from tocsin.model.batch import BATCH_ITEMS_MAX, LINGER_US_DEFAULT, LINGER_US_MAX
from tocsin.model.batch import CallbackBatch as BatchRule
from tocsin.model.errors import FieldError
from tocsin.model.instants import format_duration, parse_duration
from tocsin.model.validation import InputRules
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields, below
from tocsin.web.http.instants import read
from tocsin.web.http.wire import RequestStruct, ResponseStruct, about

BatchMax = Annotated[int, about("How many timers one request has at most.", 100), limits.between(2, BATCH_ITEMS_MAX)]
Linger = Annotated[
    str,
    about(
        f"How long the first due timer of a request waits for others: 0s to {format_duration(LINGER_US_MAX)}. Default "
        f"{format_duration(LINGER_US_DEFAULT)}.",
        "100ms",
    ),
    limits.DURATION,
]
CALLBACK_BATCH = about(
    "Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer by "
    "timer."
)


class CallbackBatch(RequestStruct, kw_only=True):
    """How due timers of one receiver are sent together."""

    max: BatchMax
    linger: Linger | UnsetType = UNSET


class CallbackBatchAnswer(ResponseStruct):
    """How due timers of one receiver are sent together."""

    max: BatchMax
    linger: Linger


def read_batch(
    sent: CallbackBatch | UnsetType | None, rules: InputRules, errors: list[FieldError]
) -> BatchRule | UnsetType | None:
    """The rule in a request's field `callbackBatch`; UNSET and None are returned unchanged."""
    if sent is UNSET or sent is None:
        return sent
    bad = bad_fields(sent, rules)
    linger_us = LINGER_US_DEFAULT
    if sent.linger is not UNSET:
        unreadable = len(bad)
        linger_us = read(parse_duration, "linger", sent.linger, bad)
        if len(bad) == unreadable and linger_us > LINGER_US_MAX:
            bad.append(FieldError("linger", f"is too long; give 0s to {format_duration(LINGER_US_MAX)}"))
    errors += below("callbackBatch", bad)
    return BatchRule(sent.max, linger_us)


def batch_answer(found: BatchRule | None) -> CallbackBatchAnswer | UnsetType:
    """The rule as clients see it."""
    return UNSET if found is None else CallbackBatchAnswer(found.items, format_duration(found.linger_us))


def batch_detail(sent: CallbackBatch | UnsetType | None) -> str | UnsetType:
    """The rule of a request in an entry of the audit trail."""
    if sent is UNSET or sent is None:
        return UNSET if sent is UNSET else "removed"
    return f"{sent.max}" if sent.linger is UNSET else f"{sent.max} within {sent.linger}"
