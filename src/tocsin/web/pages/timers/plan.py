"""The plan of a retry policy: a summary, and the instant of each attempt."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.retry import RetryPolicy, next_attempt_at
from tocsin.web.pages.presentation import span

#: Attempts that are listed: the first ones, and the last.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Planned:
    """One attempt; `after_us` is its distance from the first one, in microseconds."""

    number: int
    at: int
    after_us: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The attempts if each fails at once: all, or the first ones and the last if there are many."""

    words: str
    attempts: list[Planned]


def plan(policy: RetryPolicy, first_at: int, expires_at: int | None = None) -> Plan:
    """The plan for a first attempt at an instant; none begins after `expires_at`, if there is such a limit. Actual attempts
    are a little later: each one takes time, and a response may request a longer delay."""
    attempts = [Planned(1, first_at, 0)]
    while (
        at := next_attempt_at(
            policy, attempts_made=len(attempts), first_attempt_at=first_at, now_us=attempts[-1].at, jitter=0.0
        )
    ) is not None and (expires_at is None or at <= expires_at):
        attempts.append(Planned(len(attempts) + 1, at, at - first_at))
    shown = attempts if len(attempts) <= _SHOWN else [*attempts[: _SHOWN - 1], attempts[-1]]
    return Plan(_words(attempts), shown)


def _words(attempts: list[Planned]) -> str:
    if len(attempts) == 1:
        return "One attempt, no retries."
    return f"Up to {len(attempts)} attempts over about {span(attempts[-1].after_us)}:"
