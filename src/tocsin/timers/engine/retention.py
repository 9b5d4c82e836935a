"""Removal of rows from the store: finished timers whose retention is over, occurrences beyond those that a schedule keeps,
members that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tocsin.model.errors import StoreCallFailed, StoreError
from tocsin.ports.observer import HeartbeatFailed, HistoryPurged, LoadFailed
from tocsin.ports.store import ShardState
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.membership import Membership

#: Occurrences of a schedule between two removals of its oldest ones, unless a quarter of those that are kept is more.
_STEP_MIN = 100
#: Schedules whose oldest occurrences are removed in one pass, so that other writes wait little. The next pass continues.
_SCHEDULES_PER_PASS = 1_000


async def purge(context: Context) -> None:
    """One pass over all that finished timers and schedules leave behind."""
    await purge_history(context)
    await trim_schedules(context)


async def purge_history(context: Context) -> None:
    """Removes finished timers whose retention is over, in bulk, until none is left. It has to be over by both this node's
    clock and the store's: one that is set far ahead would have all of them removed."""
    limits = context.limits
    removed = limits.purge_rows
    while removed >= limits.purge_rows:
        try:
            removed = await context.bounded(context.store.purge_history(context.passed_us, limits.purge_rows))
        except StoreCallFailed as error:
            context.observe(LoadFailed(None, str(error)))
            return
        if removed:
            context.observe(HistoryPurged(removed))


async def trim_schedules(context: Context) -> None:
    """Removes the oldest occurrences of the schedules that have more than `occurrences_kept`, the longest waiting first."""
    limits = context.limits
    for schedule in list(context.outgrown)[:_SCHEDULES_PER_PASS]:
        # First, because its next occurrence may name it again before this ends.
        del context.outgrown[schedule]
        try:
            removed = await context.bounded(
                context.store.trim_runs(*schedule, limits.occurrences_kept, limits.purge_rows)
            )
        except StoreCallFailed as error:
            context.outgrown[schedule] = None
            context.observe(LoadFailed(schedule[0], str(error)))
            return
        if removed >= limits.purge_rows:
            context.outgrown[schedule] = None
        if removed:
            context.observe(HistoryPurged(removed))


def note_recorded(context: Context, shard_id: int, accounted: Mapping[bytes, tuple[int, int]]) -> None:
    """Notes which schedules may have outgrown `occurrences_kept`, by how many of their instants were accounted for before and
    after a batch: each of them seldom enough that the store counts few rows for each record. Schedules that were created
    together do not come at the same time."""
    step = max(context.limits.occurrences_kept // 4, _STEP_MIN)
    for uuid, (before, after) in accounted.items():
        phase = int.from_bytes(uuid[-4:], "big") % step
        if (before + phase) // step != (after + phase) // step:
            context.outgrown[shard_id, uuid] = None


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
