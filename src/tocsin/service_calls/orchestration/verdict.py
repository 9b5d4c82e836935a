"""Decides whether a failed attempt may be retried, and when at the earliest.

`docs/explanation/service-agent.md` has the decision table. The verdict depends only on the event, which the execution
log can reproduce exactly: an attempt that is reported twice gets the same verdict.
"""

from __future__ import annotations

from typing import NamedTuple

from tocsin.model.answer import RETRIED_4XX, retry_after_at
from tocsin.service_calls.messages import ErrorMeta, ResponseMeta

#: Errors that a retry cannot cure: the target is forbidden, or the request cannot be sent at all.
FINAL_KINDS = frozenset({"EGRESS_REFUSED", "INVALID_REQUEST"})


class Verdict(NamedTuple):
    """`final` forbids another attempt. `not_before_us` (from Retry-After) delays it."""

    final: bool
    not_before_us: int | None = None


def judge(error: ErrorMeta, response: ResponseMeta | None, ended_at_us: int, retry_after_us_max: int) -> Verdict:
    """The verdict on a failed attempt. `retry_after_us_max` limits how far Retry-After can delay the next one."""
    if response is None:
        return Verdict(error.kind in FINAL_KINDS)
    if 400 <= response.status < 500 and response.status not in RETRIED_4XX:
        return Verdict(True)
    return Verdict(False, retry_after_at(response.headers.get("retry-after"), ended_at_us, retry_after_us_max))
