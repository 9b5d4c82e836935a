"""Every limit of the engine, by name. `tocsin.config` fills them from file, environment and flags."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """All durations in microseconds (`_us`). `docs/reference/settings.md` describes each under the same name."""

    #: How far ahead of now the window is loaded at most.
    look_ahead_max_us: int = 300 * SECOND
    #: Rows asked of the store in one load.
    load_page_rows: int = 1_000
    #: Timers held in memory by the node's windows, all shards together.
    window_timers_max: int = 100_000
    #: Bytes of stored records held in memory by the node's windows, all shards together.
    window_bytes_max: int = 64 * 1024 * 1024
    #: Callbacks in flight on the node.
    callbacks_in_flight_max: int = 1_000
    #: Callbacks in flight to one destination (scheme, host, port).
    destination_in_flight_max: int = 256
    #: Due timers that are looked at before the event loop gets its turn.
    dispatch_rows_per_turn: int = 100
    #: What a destination that does not answer is cut down to, step by step; answers raise it again.
    destination_in_flight_min: int = 4
    #: Due timers that wait for one destination before further ones are parked in the store.
    destination_waiting_max: int = 50_000
    #: Results of callbacks that may wait in memory while the store takes no writes (a full disk), where the store is this
    #: node's alone. Beyond them, or beyond `window_bytes_max` of their records, nothing fires until they are written. More
    #: take more memory, and repeat more callbacks after a crash.
    unwritten_results_max: int = 20_000
    #: How long completions may wait for a client's write to share a batch with.
    commit_interval_us: int = 50 * MS
    #: What a commit should take: results of callbacks that would make it longer wait for the next one, so that clients'
    #: writes never wait long.
    commit_target_us: int = 15 * MS
    #: How long a commit may wait, and never longer than half of what the last one took, for the clients that one answered
    #: to come again: otherwise they would take turns with those who came meanwhile, in commits of half the size.
    commit_gather_max_us: int = 2 * MS
    #: How long a finished timer waits for the range delete before it is deleted by uuid.
    exact_delete_after_us: int = 250 * MS
    #: Rows (upserts, deletes, history) in one commit; more wait for the next.
    batch_rows_max: int = 5_000
    #: Bytes of records in one commit.
    batch_bytes_max: int = 8 * 1024 * 1024
    #: Lanes that commit in parallel, where the store has parallel writers.
    lanes: int = 1
    #: Client writes waiting on this node; beyond it they are refused as OVERLOADED.
    pending_writes_max: int = 50_000
    #: Time budget of a client's write; one that is still waiting then is dropped unwritten.
    write_timeout_us: int = 10 * SECOND
    #: Time after which a commit, claim or load counts as an unknown outcome.
    store_timeout_us: int = 30 * SECOND
    #: Pause between tries when the store fails.
    store_retry_interval_us: int = 200 * MS
    #: Interval of heartbeats.
    heartbeat_interval_us: int = 1 * SECOND
    #: A node dispatches only while its last successful heartbeat was sent less than this ago.
    node_lease_us: int = 3 * SECOND
    #: A member whose counter stands still for this long is taken for dead.
    member_timeout_us: int = 5 * SECOND
    #: A member that has stood still for this long and owns nothing is removed from the list of members.
    member_forget_us: int = 60 * SECOND
    #: Pause, at least, between two warnings that two living nodes have one name.
    name_warning_interval_us: int = 60 * SECOND
    #: Node clock against store clock: beyond it nothing is dispatched.
    clock_skew_max_us: int = 500 * MS
    #: How long a release waits for callbacks in flight; not below the greatest callback timeout.
    drain_timeout_us: int = 65 * SECOND
    #: Attempts kept in a timer's attempt log.
    attempt_log_max: int = 10
    #: Greatest delay that a receiver's Retry-After can ask for.
    retry_after_max_us: int = 24 * 3_600 * SECOND
    #: Latest instant, from now, at which a timer may be due.
    execute_ahead_max_us: int = 100 * 366 * 24 * 3_600 * SECOND
    #: Payload bytes that a rescheduling answer may bring.
    payload_bytes_max: int = 100 * 1024
    #: Arrays and objects within one another in such a payload. It is read again wherever its timer goes, at any stack depth.
    payload_depth_max: int = 100
    #: Parked timers that come back in one sweep of a shard.
    resume_rows: int = 1_000
    #: Pause before a shard that this node had to leave (bad rows, newer format) is claimed again.
    shun_us: int = 60 * SECOND
    #: Pause before a change that the store refuses by itself (a retry, a delete, parking) is tried once more.
    refused_interval_us: int = 60 * SECOND
    #: Pause, at least, between two looks at who owns what, however often requests or other nodes ask for one.
    look_interval_us: int = 50 * MS
    #: Random delay, at most, before a claim that was lost is tried again.
    claim_backoff_us: int = 1 * SECOND
    #: Interval at which namespaces are read again.
    namespaces_interval_us: int = 2 * SECOND
    #: A node dispatches only while its last successful reading of the namespaces was begun less than this ago. A change of a
    #: namespace waits for a node that does not confirm it for a fifth longer, and is acknowledged then.
    namespaces_lease_us: int = 5 * SECOND
    #: Undecodable rows in a minute after which the shard is stopped.
    bad_rows_per_minute_max: int = 5
    #: Interval at which retention removes finished timers, and how many go in one transaction.
    purge_interval_us: int = 10 * SECOND
    purge_rows: int = 2_000
