"""Whether and when a failed try is repeated."""

from __future__ import annotations

from collections.abc import Callable

from tocsin_client._error_bases import ApiError, TransportError

FIRST_DELAY_S = 0.1
DELAY_S_MAX = 5.0
#: Of several retries only as many as this in a row, while nothing succeeds, over all calls of a client.
BUDGET_TOKENS = 20.0
TOKENS_PER_SUCCESS = 0.1
#: 500 is missing: what failed once by a defect fails again.
REPEATED_STATUSES = frozenset({408, 429, 502, 503, 504})
#: After these nothing was executed.
REFUSED_STATUSES = frozenset({408, 429})


class RetryBudget:
    """Bounds the retries of a client: if most tries fail, repeating each of them makes an overload worse."""

    def __init__(self) -> None:
        self.tokens = BUDGET_TOKENS

    def spend(self) -> bool:
        """Takes a token for a retry; False if none is left."""
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def earn(self) -> None:
        """A try succeeded."""
        self.tokens = min(BUDGET_TOKENS, self.tokens + TOKENS_PER_SUCCESS)


def is_repeated(error: ApiError | TransportError) -> bool:
    """Whether the same request could succeed later."""
    return isinstance(error, TransportError) or error.status in REPEATED_STATUSES


def maybe_done(error: ApiError | TransportError) -> bool:
    """Whether the request may have been executed all the same."""
    if isinstance(error, TransportError):
        return error.maybe_done
    return error.status >= 500


def retry_delay(retry: int, retry_after: float | None, random: Callable[[], float]) -> float:
    """Seconds before the given retry, counted from 0. `random` returns a number from 0 to 1."""
    if retry_after is not None:
        return retry_after * (1 + random() / 2)
    return min(DELAY_S_MAX, FIRST_DELAY_S * 2.0**retry) * random()
