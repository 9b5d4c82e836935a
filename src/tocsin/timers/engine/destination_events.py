"""What destinations report."""

from __future__ import annotations

from logging import INFO, WARNING

from tocsin.ports.event import Counter, Histogram, LineLimit
from tocsin.ports.observer import Event


class BreakerOpened(Event, frozen=True):
    """Nearly all attempts of a destination failed within 30 seconds: `failures` of `attempts`, the last with `error`. It gets
    no requests but single probes until these succeed; its timers wait."""

    destination: str
    failures: int
    attempts: int
    error: str
    level = WARNING
    line_limit = LineLimit(20, 60)
    counter = Counter("tocsin_breakers_opened", "Breakers of destinations that have opened.")


class BreakerClosed(Event, frozen=True):
    """A destination gets its requests again, `open_us` microseconds after its breaker opened. `by`: `probes` that succeeded,
    a success on another `node`; or `forgotten`, because nothing was due for it for some minutes."""

    destination: str
    by: str
    open_us: int
    level = INFO
    line_limit = LineLimit(20, 60)


class BatchEnded(Event, frozen=True):
    """One request with the callbacks of `items` timers ended, under a `webhook_id` of its own. Beside it,
    `BatchAccepted` reports the timers that were accepted, and `AttemptFinished` each of the others."""

    destination: str
    webhook_id: str
    items: int
    duration_us: int
    histograms = (
        Histogram("tocsin_batch_items", "Timers of one batch.", (1, 2, 5, 10, 20, 50, 100, 200, 500), "items"),
    )
