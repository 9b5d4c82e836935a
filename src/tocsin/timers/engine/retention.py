"""Removal of expired rows from the store: finished timers whose retention is over, and members that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.model.errors import StoreCallFailed, StoreError
from tocsin.ports.observer import HeartbeatFailed, HistoryPurged, LoadFailed
from tocsin.ports.store import ShardState
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.membership import Membership


async def purge_history(context: Context) -> None:
    """Removes finished timers whose retention is over, in bulk, until none is left."""
    limits = context.limits
    removed = limits.purge_rows
    while removed >= limits.purge_rows:
        try:
            removed = await context.bounded(context.store.purge_history(context.clock.now_us(), limits.purge_rows))
        except StoreCallFailed as error:
            context.observe(LoadFailed(None, str(error)))
            return
        if removed:
            context.observe(HistoryPurged(removed))


async def forget_dead(context: Context, membership: Membership, shards: Iterable[ShardState]) -> None:
    """Removes the rows of members that are gone, except those that still own a shard: a claim compares their counters."""
    boot, owners = context.clock.boottime_us(), {state.owner for state in shards}
    for member in membership.members():
        gone = (
            context.store.capabilities.exclusive
            or membership.silent_for_us(member.incarnation, boot) >= context.limits.member_forget_us
        )
        if not gone or member.incarnation == context.incarnation or member.incarnation in owners:
            continue
        try:
            await context.bounded(context.store.forget_member(member.incarnation, member.counter))
        except StoreError as error:
            context.observe(HeartbeatFailed(f"removing the member row of {member.node} failed: {error}"))
            return
