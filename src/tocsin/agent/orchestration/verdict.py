"""Whether a failed attempt may be made again, and when at the earliest: the one place that decides it.

`docs/explanation/service-agent.md` has it as a table. It looks at nothing but the event, which the execution log can repeat
word for word, so that an attempt that is reported twice is judged the same.
"""

from __future__ import annotations

from typing import NamedTuple

from tocsin.agent.messages import ErrorMeta, ResponseMeta
from tocsin.model.answer import RETRIED_4XX, retry_after_at

#: What no repetition mends: the target is forbidden, or the request can't be sent at all.
FINAL_KINDS = frozenset({"EGRESS_REFUSED", "INVALID_REQUEST"})


class Verdict(NamedTuple):
    """`final` forbids another attempt, `not_before_us` (Retry-After) delays it."""

    final: bool
    not_before_us: int | None = None


def judge(error: ErrorMeta, response: ResponseMeta | None, ended_at_us: int, retry_after_us_max: int) -> Verdict:
    """The verdict on an attempt that failed. `retry_after_us_max` bounds how far Retry-After can delay the next."""
    if response is None:
        return Verdict(error.kind in FINAL_KINDS)
    if 400 <= response.status < 500 and response.status not in RETRIED_4XX:
        return Verdict(True)
    return Verdict(False, retry_after_at(response.headers.get("retry-after"), ended_at_us, retry_after_us_max))
