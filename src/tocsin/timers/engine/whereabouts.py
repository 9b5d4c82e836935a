"""Where a timer of an owned shard is in memory, and what keeps it from being fired."""

from __future__ import annotations

from tocsin.model.timer import Timer
from tocsin.ports.forward import Obstacle, RowPlace, Whereabouts
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.shard import Shard


def whereabouts(shard: Shard, dispatcher: Dispatcher, uuid: bytes) -> Whereabouts | None:
    """What this node knows of the timer now; None if it does not own the shard."""
    window = shard.window
    if window is None:
        return None
    attempts = window.in_flight.get(uuid)
    if attempts:
        latest = attempts[-1]
        until = latest.fired_at + latest.row.timer.timeout_us
        return Whereabouts(RowPlace.IN_FLIGHT, attempt=latest.number, until=until)
    if window.being_written(uuid):
        return Whereabouts(RowPlace.WRITING)
    row = window.rows.get(uuid)
    obstacle, name = _obstacle(shard, dispatcher, None if row is None else row.timer)
    return Whereabouts(RowPlace.STORE if row is None else RowPlace.WINDOW, obstacle, name)


def _obstacle(shard: Shard, dispatcher: Dispatcher, timer: Timer | None) -> tuple[Obstacle, str]:
    """The first obstacle in the way of the shard's timers, or of this one; and its name."""
    if (reason := dispatcher.paused_reason) is not None:
        return Obstacle.DISPATCH, reason
    if shard.draining:
        return Obstacle.HAND_OVER, ""
    return (Obstacle.NONE, "") if timer is None else dispatcher.obstacle(timer)
