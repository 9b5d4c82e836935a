"""Whether and when a failed try is repeated."""

from __future__ import annotations

from collections.abc import Callable

from tocsin_client._error_bases import ApiError, TransportError

FIRST_DELAY_S = 0.1
DELAY_S_MAX = 5.0
#: In tenths of a retry: 20 retries over all calls of a client while nothing succeeds, and one more for ten successes.
BUDGET_MAX = 200
RETRY_COST = 10
SUCCESS_GAIN = 1
#: 500 is missing: what failed once by a defect fails again.
REPEATED_STATUSES = frozenset({408, 429, 502, 503, 504})
#: After these nothing was executed.
REFUSED_STATUSES = frozenset({408, 429})


class RetryBudget:
    """Bounds the retries of a client: if most tries fail, repeating each of them makes an overload worse."""

    def __init__(self) -> None:
        self.left: int = BUDGET_MAX

    def spend(self) -> bool:
        """Pays for a retry; False if too little is left."""
        if self.left < RETRY_COST:
            return False
        self.left -= RETRY_COST
        return True

    def earn(self) -> None:
        """A try succeeded."""
        self.left = min(BUDGET_MAX, self.left + SUCCESS_GAIN)


def is_repeated(error: ApiError | TransportError) -> bool:
    """Whether the same request could succeed later."""
    return isinstance(error, TransportError) or error.status in REPEATED_STATUSES


def maybe_done(error: ApiError | TransportError) -> bool:
    """Whether the request may have been executed all the same."""
    if isinstance(error, TransportError):
        return error.maybe_done
    return error.status >= 500


def retry_delay(retry: int, retry_after: float | None, left_s: float, random: Callable[[], float]) -> float | None:
    """Seconds before the given retry, counted from 0. None: in the time left there is none. `random` returns a number from
    0 to 1."""
    if retry_after is not None:
        delay = retry_after * (1 + random() / 2)
    else:
        delay = min(DELAY_S_MAX, FIRST_DELAY_S * 2.0**retry) * random()
    return delay if delay < left_s else None
