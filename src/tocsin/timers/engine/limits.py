"""The engine's limits, by name."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Durations in microseconds (`_us`)."""

    # Settings. `tocsin.settings.groups` describes each under the same name.

    look_ahead_max_us: int = 300 * SECOND
    load_page_rows: int = 1_000
    window_timers_max: int = 100_000
    window_bytes_max: int = 64 * 1024 * 1024
    callbacks_in_flight_max: int = 1_000
    destination_in_flight_max: int = 256
    uncommitted_results_max: int = 20_000
    commit_interval_us: int = 50 * MS
    batch_bytes_max: int = 8 * 1024 * 1024
    lanes: int = 1
    pending_writes_max: int = 50_000
    write_timeout_us: int = 10 * SECOND
    store_timeout_us: int = 30 * SECOND
    heartbeat_interval_us: int = 1 * SECOND
    node_lease_us: int = 3 * SECOND
    member_timeout_us: int = 5 * SECOND
    duplicate_name_warning_interval_us: int = 60 * SECOND
    clock_skew_max_us: int = 500 * MS
    drain_timeout_us: int = 65 * SECOND
    retry_after_max_us: int = 24 * 3_600 * SECOND
    execute_ahead_max_us: int = 100 * 366 * 24 * 3_600 * SECOND
    payload_bytes_max: int = 100 * 1024
    payload_depth_max: int = 100
    namespaces_interval_us: int = 2 * SECOND
    namespaces_lease_us: int = 5 * SECOND
    purge_interval_us: int = 10 * SECOND
    occurrences_kept: int = 1_000

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Due timers that are dispatched before requests get their turn. More drain bursts a little faster and delay the API.
    dispatch_rows_per_turn: int = 100
    #: Callbacks in flight at once to which a destination that does not answer is reduced, step by step. Few, so that a
    #: hung receiver takes few slots; more than one, so that it recovers quickly.
    destination_in_flight_min: int = 4
    #: Due timers deferred in memory for one destination; further ones return to the store until there is room. Half of
    #: `window_timers_max`, so that one destination leaves room for others.
    destination_waiting_max: int = 50_000
    #: Target duration of a commit: results of callbacks that would make it longer wait for the next one, so that a
    #: client's write waits little during a burst.
    commit_target_us: int = 15 * MS
    #: How long a commit waits for the clients that the last one answered, and at most half of that commit's duration.
    #: Otherwise these clients and those that came meanwhile would alternate, in commits of half the size.
    commit_delay_max_us: int = 2 * MS
    #: How long a finished timer waits to be deleted in one range with its neighbors before it is deleted by its key.
    exact_delete_after_us: int = 250 * MS
    #: Rows (writes, deletes, history) in one commit; more wait for the next. `batch_bytes_max` bounds larger rows.
    batch_rows_max: int = 5_000
    #: Pause between attempts while the store fails: short, to recover soon; not shorter, to spare a database in trouble.
    store_retry_interval_us: int = 200 * MS
    #: How long after its end a node that owns no shard stays on the list of nodes, for people to see it.
    member_forget_us: int = 60 * SECOND
    #: Attempts that a timer's log keeps, the latest ones: a record must stay small.
    attempt_log_max: int = 10
    #: What the engine adds to a record while its timer is pending and when it ends: the attempts' log, the last error,
    #: idempotency keys, a schedule's progress. Clients' writes leave so much of the greatest row free, so that every timer
    #: that was accepted can be retried and recorded.
    row_reserve_bytes: int = 32 * 1024
    #: Suspended timers that are resumed in one transaction of a shard, so that other writes wait little.
    resume_rows: int = 1_000
    #: How often timers are tried again whose address the settings forbid. Other settings need a restart, after which they are
    #: tried at once; this is for names that lead elsewhere by now. Rare, since each try writes two rows for nothing if not.
    refused_retry_interval_us: int = 900 * SECOND
    #: How long a node does not claim a shard again that it released because of its contents (unreadable rows, a newer
    #: format).
    shard_retry_interval_us: int = 60 * SECOND
    #: Pause before a single change that the store rejected (a retry, a delete) is tried again.
    rejected_write_retry_interval_us: int = 60 * SECOND
    #: Least time between two reads of shard ownership, however often requests ask for it.
    ownership_refresh_interval_us: int = 50 * MS
    #: Longest random pause before a claim that another node won is tried again, so that nodes do not collide.
    claim_backoff_us: int = 1 * SECOND
    #: Unreadable rows of a shard, in a minute, after which the node gives the shard up for another, perhaps newer, one.
    unreadable_rows_per_minute_max: int = 5
    #: How often a node checks whether it has claimed shards whose schedules older time zones may have planned. A few seconds,
    #: so that one pass serves all shards that a node claims at its start.
    replanning_interval_us: int = 5 * SECOND
    #: Finished timers that one purge deletes in one transaction of a shard, so that other writes wait little.
    purge_rows: int = 2_000
