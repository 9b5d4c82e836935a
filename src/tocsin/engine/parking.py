"""Brings parked timers back when what they were parked for is over (rule 14)."""

from __future__ import annotations

from tocsin.engine.context import Context
from tocsin.engine.dispatcher import Dispatcher
from tocsin.engine.rows import Kind, Op
from tocsin.engine.shard import Shard
from tocsin.model.errors import StoreError
from tocsin.ports.observer import LoadFailed, RowsResumed
from tocsin.ports.store import KEY_MAX, KEY_MIN


async def sweep(shard: Shard, context: Context, dispatcher: Dispatcher) -> None:
    """Resumes up to `resume_rows` parked timers of the shard whose reason no longer holds, the earliest first.

    Reads nothing while every known reason still holds.
    """
    reasons = shard.parked_reasons
    if reasons is not None and not any(dispatcher.room_for(reason) for reason in reasons):
        return
    window, limits = shard.window, context.limits
    # What is being parked meanwhile, or was and is not durable yet, may be missing in the pages.
    unsure = dict(shard.lately_parked) if window is not None and window.parking else {}
    shard.lately_parked = dict(unsure)
    room: dict[str, int] = {}
    remaining: set[str] = set()
    resumed, after = 0, KEY_MIN
    while window is not None and after < KEY_MAX and resumed < limits.resume_rows:
        try:
            page = await context.in_turn(context.store.load_parked(shard.shard_id, after, limits.load_page_rows))
        except StoreError as error:
            context.observe(LoadFailed(shard.shard_id, str(error)))
            return
        if shard.window is not window:
            return
        after = page.complete_to
        for row in page.rows:
            reason = row.parked or ""
            left = room.setdefault(reason, dispatcher.room_for(reason))
            if left <= 0 or resumed >= limits.resume_rows:
                remaining.add(reason)
                continue
            room[reason] = left - 1
            resumed += 1
            window.accept(Op(Kind.RESUME, row.uuid, row.namespace, expected=row.generation))
    if window is None or shard.window is not window:
        return
    # Not read to the end: what else is parked isn't known, so the next sweep reads again.
    shard.parked_reasons = remaining | shard.lately_parked.keys() if after >= KEY_MAX else None
    if resumed:
        shard.lane.poke(shard, urgent=True)
        context.observe(RowsResumed(shard.shard_id, resumed))
