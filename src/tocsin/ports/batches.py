"""What the engine reports of batches of callbacks."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tocsin.ports.observer import ATTEMPTS, CALLBACK_DURATION, LAG, Event


class BatchAccepted(Event, frozen=True):
    """The receiver of a batch accepted the callbacks of these timers: their attempts are done, which no `AttemptFinished`
    reports. Metrics count each of them. `lags_us` are theirs, in the same order, or none if the request was never sent;
    `duration_us` is that of the request."""

    namespace: str
    webhook_id: str
    timer_ids: tuple[str, ...]
    lags_us: tuple[int, ...]
    duration_us: int
    destination: str
    outcome: ClassVar[str] = "done"
    counter = replace(ATTEMPTS, by="attempts")
    histograms = (replace(LAG, value="lags_us"), replace(CALLBACK_DURATION, value="durations_us"))

    @property
    def attempts(self) -> int:
        """How many attempts are done."""
        return len(self.timer_ids)

    @property
    def durations_us(self) -> tuple[int, ...]:
        """The duration of each attempt."""
        return (self.duration_us,) * len(self.timer_ids)
