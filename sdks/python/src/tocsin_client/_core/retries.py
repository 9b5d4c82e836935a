"""Whether and when a failed try is repeated."""

from __future__ import annotations

from collections.abc import Callable

from tocsin_client._error_bases import ApiError, TransportError

FIRST_DELAY_S = 0.1
DELAY_S_MAX = 2.0
#: From this retry on the pause is the longest one; doubling further would end beyond what a float holds.
_DOUBLINGS_MAX = 10
#: In tenths of a retry: 100 retries over all calls of a client while nothing succeeds, and one more for ten successes.
BUDGET_MAX = 1_000
RETRY_COST = 10
SUCCESS_GAIN = 1
#: 500 is missing: what failed once by a defect fails again.
REPEATED_STATUSES = frozenset({408, 429, 502, 503, 504})
#: Codes of 503 after which nothing was executed; after the others it may have been.
REFUSED_CODES = frozenset({"NOT_READY", "REQUEST_EXPIRED", "NO_ROOM_FOR_BODY"})


class RetryBudget:
    """Bounds the retries of a client that may make the server do something twice: if most tries fail, repeating each of
    them makes an overload worse."""

    def __init__(self) -> None:
        self.left: int = BUDGET_MAX

    def spend(self) -> bool:
        """Pays for a retry; False if too little is left."""
        if self.left < RETRY_COST:
            return False
        self.left -= RETRY_COST
        return True

    def earn(self, paid: int, retries: int) -> None:
        """A call succeeded after so many retries, of which so many were paid for: these are given back."""
        gain = paid * RETRY_COST if retries else SUCCESS_GAIN
        self.left = min(BUDGET_MAX, self.left + gain)


def is_repeated(error: Exception) -> bool:
    """Whether the same request could succeed later."""
    if isinstance(error, TransportError):
        return not error.final
    return isinstance(error, ApiError) and error.status in REPEATED_STATUSES


def maybe_done(error: Exception) -> bool:
    """Whether the request may have been executed all the same."""
    if isinstance(error, TransportError):
        return error.maybe_done
    if not isinstance(error, ApiError) or error.status < 500:
        return False
    return not (error.status == 503 and error.code in REFUSED_CODES)


def retry_delay(retry: int, retry_after: float | None, left_s: float, random: Callable[[], float]) -> float | None:
    """Seconds before the given retry, counted from 0. None: in the time left there is none. `random` returns a number from
    0 to 1."""
    if retry_after is not None:
        delay = retry_after * (1 + random() / 2)
    else:
        delay = min(DELAY_S_MAX, FIRST_DELAY_S * 2.0 ** min(retry, _DOUBLINGS_MAX)) * random()
    return delay if delay < left_s else None
