"""The inbox's events."""

from __future__ import annotations

from logging import DEBUG, ERROR, INFO, WARNING

from tocsin.ports.event import LAG_SECONDS, Counter, Histogram, LineLimit
from tocsin.ports.observer import Event


class InboxRowsSettled(Event, frozen=True):
    """Rows of the inbox were settled. `outcome` is `created`: their timers are durable; `dead`: they are refused for good,
    and stay in the table; `waiting`: they are refused for the moment, and tried again. `reason` is the error code of one
    of them; a dead row has all of it. `lag_us` is the time since the oldest one that was created was written."""

    outcome: str
    rows: int
    reason: str = ""
    lag_us: int | None = None
    line_limit = LineLimit(1, window_s=10.0, each="outcome")
    counter = Counter(
        "tocsin_inbox_rows",
        "Rows of the inbox by what became of them: created, dead (refused for good), waiting (refused for the moment).",
        ("outcome",),
        by="rows",
        from_zero=("created", "dead", "waiting"),
    )
    histograms = (
        Histogram(
            "tocsin_inbox_lag_seconds",
            "From the writing of a row of the inbox, which may be long before its commit, to its durable timer; the oldest "
            "of those that are created together.",
            LAG_SECONDS,
            "lag_us",
        ),
    )

    def severity(self) -> int:
        """Dead rows need somebody."""
        return {"dead": ERROR, "waiting": WARNING}.get(self.outcome, DEBUG)


class InboxInterrupted(Event, frozen=True):
    """The inbox's database, or the engine, did not do what it was asked; rows wait. `part` is `database` or `engine`."""

    part: str
    error: str
    pause_s: float
    level = WARNING
    line_limit = LineLimit(1, window_s=10.0, each="part")
    counter = Counter(
        "tocsin_inbox_interruptions",
        "Rounds of the inbox that failed, by what failed: database, engine (busy, or without its store).",
        ("part",),
        from_zero=("database", "engine"),
    )


class InboxOpened(Event, frozen=True):
    """This node drains the inbox from now on: it owns the first shard, and reached the database at `place`."""

    place: str
    level = INFO


class InboxResumed(Event, frozen=True):
    """The inbox's database answers again, after `away_s` seconds."""

    away_s: float
    level = INFO
