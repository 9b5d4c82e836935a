"""What a retry policy comes to, in words and instants."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.retry import RetryPolicy, next_attempt_at
from tocsin.ui.show import span

#: Attempts that are shown one by one: the first ones, and the last.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Planned:
    """One attempt: `after_us` microseconds from the first one."""

    number: int
    at: int
    after_us: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Every attempt, if each fails at once, or the first ones and the last where there are many."""

    words: str
    attempts: list[Planned]


def plan(policy: RetryPolicy, first_at: int) -> Plan:
    """The plan of a timer whose first attempt is at an instant. The true ones come a little later: each attempt takes time,
    and an answer may ask for a longer delay."""
    attempts = [Planned(1, first_at, 0)]
    while (
        at := next_attempt_at(
            policy, attempts_made=len(attempts), first_attempt_at=first_at, now_us=attempts[-1].at, jitter=0.0
        )
    ) is not None:
        attempts.append(Planned(len(attempts) + 1, at, at - first_at))
    shown = attempts if len(attempts) <= _SHOWN else [*attempts[: _SHOWN - 1], attempts[-1]]
    return Plan(_words(attempts), shown)


def _words(attempts: list[Planned]) -> str:
    if len(attempts) == 1:
        return "One attempt, whatever comes of it."
    return f"{len(attempts)} attempts over about {span(attempts[-1].after_us)}, if none succeeds before:"
