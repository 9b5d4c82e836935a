"""What destinations report."""

from __future__ import annotations

from logging import INFO, WARNING

from tocsin.ports.event import Counter, LineLimit
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
