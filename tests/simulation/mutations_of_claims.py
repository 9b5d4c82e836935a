"""Fence, claims, node leases and clocks (rules 1, 3, 6, 7, 12, 23)."""

from __future__ import annotations

from .mutation import mutation
from .mutation_operators import always, drop, insert, leave_out, never, replace, rewrite, widen

WINDOW = "tocsin.timers.engine.window:Window."
SHARD = "tocsin.timers.engine.shard:Shard."
LANE = "tocsin.timers.engine.committer:CommitLane."
STORE = "tocsin.stores.memory:MemoryStore."
LEASE = "tocsin.timers.engine.lease:NodeLease."
OWNERSHIP = "tocsin.timers.engine.ownership:Ownership."
DISPATCHER = "tocsin.timers.engine.dispatcher:Dispatcher."
_RARE = "tests/simulation/test_rare_interleavings.py::"
_REGRESSION = "tests/simulation/test_simulation.py::test_seeds_that_failed_once_pass"
_SUPERVISOR = "tests/unit/test_supervisor.py::"
_WRONG_CLOCK = "tests/unit/test_wrong_clock.py::"
_USES_OWN = """
if state.owner == context.incarnation:
    await self._own(shard, state.epoch, self._lease.lapses)
    return
"""
_ONLY_READS = """
if getattr(self, "_lapsed", False):
    await context.bounded(context.refresh_namespaces())
    states = {state.shard_id: state for state in await context.bounded(context.store.shards())}
    for shard in list(self._dispatcher.shards.values()):
        state, window = states.get(shard.shard_id), shard.window
        if window and state and (state.epoch, state.owner) != (window.epoch, context.incarnation):
            shard.lose("fenced")
    self._lapsed = False
"""

MUTATIONS = [
    mutation("the store does not check the fence", 1, always(STORE + "_fenced", "shard is not None", "shard.epoch")),
    mutation(
        "the fence admits the former claim",
        1,
        widen(STORE + "_fenced", "shard.epoch", or_='(epoch, owner) == getattr(shard, "former", None)'),
        insert(STORE + "claim", "shard.former = (shard.epoch, shard.owner)", before="shard.epoch += 1"),
    ),
    mutation("an unknown outcome is ignored", 3, drop(LANE + "_try", "shard.lose")),
    mutation(
        "after an unknown outcome the shard is read without a new claim",
        3,
        insert(OWNERSHIP + "claim", _USES_OWN, before="presumed_dead, lapses = ..."),
    ),
    mutation(
        "a claim that the store did not confirm is used",
        3,
        insert(
            OWNERSHIP + "claim",
            _USES_OWN.replace("state.owner", 'state.epoch > getattr(shard, "last_epoch", 0) and state.owner'),
            before="presumed_dead, lapses = ...",
        ),
        insert(SHARD + "own", "self.last_epoch = epoch", after="self.window = ..."),
    ),
    mutation(
        "a batch with an unknown outcome is reported as not written",
        20,
        replace(LANE + "_try", "ShardUnavailable", by="ShardMoved"),
    ),
    mutation(
        "a claim loads from now on",
        7,
        insert(
            SHARD + "own",
            'self.window.horizon = (context.clock.now_us() - 1_000_000, b"")',
            after="self.window = ...",
        ),
    ),
    mutation(
        "what was fetched for a batch outlives the claim",
        17,
        rewrite(
            LANE + "_assembled",
            "valid = ...",
            to="valid = [(shard, shard.window, fetched) for shard, _, fetched in read if shard.window is not None]",
        ),
        caught_by=_RARE + "test_state_read_under_a_former_claim_is_not_used",
    ),
    mutation(
        "orphaned attempts are never forgotten",
        0,
        drop(SHARD + "forget_attempt", "self._orphaned.remove"),
    ),
    mutation(
        "the store claims without comparing the heartbeat counter",
        6,
        leave_out(STORE + "claim", "member.counter"),
        caught_by=_RARE + "test_owner_that_resumes_just_before_a_claim_keeps_its_shard",
    ),
    mutation(
        "a claim names no heartbeat counter",
        6,
        replace(OWNERSHIP + "claim", "presumed_dead", by="None", in_="context.store.claim"),
        caught_by=_RARE + "test_owner_that_resumes_just_before_a_claim_keeps_its_shard",
    ),
    mutation("the node lease never ends", 6, replace(DISPATCHER + "renew", "lease_until", by="lease_until + 10**15")),
    mutation(
        "claims outlive the node lease",
        6,
        drop(LEASE + "_lapse", "shard.lose"),
        caught_by=_SUPERVISOR + "test_node_fires_no_timer_of_shards_taken_while_its_lease_was_expired",
    ),
    mutation(
        "after a lapsed node lease the ownership is only read",
        1,
        rewrite(LEASE + "_lapse", "shard.lose", to="self._lapsed = True"),
        insert(LEASE + "_beat_now", _ONLY_READS, before="context.namespaces_until"),
    ),
    mutation(
        "a claim sent before the node lease lapsed is used after it",
        6,
        never(OWNERSHIP + "_own", "self._lease.lapses != lapses"),
        caught_by=_SUPERVISOR + "test_claim_that_was_sent_before_the_lease_expired_is_not_used",
    ),
    mutation(
        "a former owner waits for its next batch to find out",
        1,
        never(OWNERSHIP + "reconcile", "shard.window.epoch < placement.state(shard_id).epoch"),
        caught_by=_SUPERVISOR + "test_owner_that_reads_a_higher_epoch_drops_its_window",
    ),
    mutation(
        "the node lease counts from the heartbeat's reply",
        6,
        replace(LEASE + "_beat_now", "sent", by="done", in_="self._last_ok = ..."),
        caught_by=_RARE + "test_node_lease_begins_when_the_heartbeat_is_sent",
    ),
    mutation(
        "a stopping node begins attempts that outlast it",
        25,
        replace(DISPATCHER + "_ends_in_time", "until_us is None", by="True"),
        caught_by=_REGRESSION,
    ),
    mutation(
        "the row of an ended node that has come back takes the shards",
        25,
        replace(
            "tocsin.timers.engine.membership:Membership.observe", "self._sightings[incarnation][1] >= 0", by="True"
        ),
        caught_by=_REGRESSION,
    ),
    mutation(
        "heartbeats overtake one another",
        25,
        rewrite(LEASE + "beat", "self._beating", to="await self._beat_now()"),
        caught_by=_RARE + "test_slow_heartbeat_does_not_clear_the_leaving_flag",
    ),
    mutation(
        "a hand-over does not wait for the results that are being written",
        25,
        leave_out(OWNERSHIP + "_hand_over", "shard.lane.is_writing(shard)"),
        caught_by="tests/unit/test_supervisor.py::test_a_hand_over_waits_for_a_retry_that_is_being_written",
    ),
    mutation(
        "a claim is used before the namespaces are read",
        23,
        drop(OWNERSHIP + "_own", "refresh_namespaces"),
    ),
    mutation(
        "a node that was frozen uses the namespaces it knew",
        23,
        replace(LEASE + "_renew", "min(lease_until, ...)", by="lease_until"),
        never(LEASE + "_beat_now", "context.namespaces_until"),
        drop(OWNERSHIP + "_own", "refresh_namespaces"),
    ),
    mutation("a timer fires a millisecond early", 12, replace(WINDOW + "due", "now_us", by="now_us + 1_000")),
    mutation(
        "history is removed by the node's clock alone",
        0,
        replace("tocsin.timers.engine.lease:NodeLease._beat_now", "min(wall, store_now)", by="wall"),
        caught_by=_WRONG_CLOCK + "test_nothing_is_purged_by_a_clock_that_is_ahead",
    ),
    mutation(
        "writes are planned by a clock that is not trusted",
        0,
        replace("tocsin.timers.engine.context:Context.planning_us", "self.confirmed or self.clock", by="self.clock"),
        caught_by=_WRONG_CLOCK + "test_writes_are_planned_by_the_time_that_was_confirmed_last",
    ),
    mutation("clock skew is not noticed", 12, never(LEASE + "_check_clock", "clock_skew_max_us")),
    mutation(
        "a clock jump is not noticed",
        12,
        never(DISPATCHER + "_may_dispatch", "clock_skew_max_us"),
        caught_by=_RARE + "test_nothing_fires_between_a_clock_jump_and_the_next_heartbeat",
    ),
    mutation(
        "a deferred timer fires although the clock was set back",
        12,
        leave_out(DISPATCHER + "_may_fire_still", "row.key[0] > now"),
        caught_by=_RARE + "test_deferred_timer_is_not_early_after_the_clock_is_set_back",
    ),
]
