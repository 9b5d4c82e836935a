"""The engine's limits, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.failure import FAILURE_RETENTION_US
from tocsin.model.setting import Topic, setting

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """The breakers of destinations."""

    enabled: bool = setting(
        True,
        "Whether a destination gets no requests but single probes while nearly all of its attempts fail (no response or a "
        "status of 500 and above). If not, each of its timers uses up its attempts. `tocsin dev` has no breakers.",
    )
    wait_max_us: int = setting(
        300 * SECOND,
        "Longest wait before the next probe of a destination whose breaker is open. Lower values find sooner that it works "
        "again, for more requests to one that does not. Where few timers wait, a probe is made every minute.",
    )


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Durations in microseconds (`_us`)."""

    sink_backlog_max: int = setting(
        100_000,
        "Events of one shard that wait for sinks of their namespaces (`eventSink`). Of more, the oldest are removed, and a "
        "`gap` event states how many. Higher values bridge longer outages of a sink, with more rows in the "
        "store, about 0.5 KB each.",
    )
    drain_timeout_us: int = setting(
        65 * SECOND,
        "How long a stopping node waits for in-flight callbacks; must be longer than `callback_timeout_max`. With "
        "lower values it stops sooner, and callbacks that were cut off are invoked again.",
        topic=Topic.LOGGING,
    )
    callbacks_in_flight_max: int = setting(
        1_000,
        "Callbacks in flight at once on a node; one namespace gets at most 80% of them. With higher values slow "
        "receivers delay others less, for more memory and connections (`callbacks.connections_max` must be higher). "
        "With lower values due timers wait in memory. Messages to NATS subjects have slots of their own, four times as many.",
        topic=Topic.CALLBACKS,
    )
    destination_in_flight_max: int = setting(
        256,
        "Callbacks in flight at once to one destination (scheme, host and port); the URLs whose paths begin with the same "
        "segment get at most 80% of them. Higher values put more load on each receiver; with lower values its due timers "
        "wait while others fire. NATS subjects with the same first token get at most 80% of four times as many.",
        topic=Topic.CALLBACKS,
    )
    window_timers_max: int = setting(
        100_000,
        "Timers that a node holds in memory, all shards together: before they are due, and after their calls until the "
        "results are written. Higher values take more memory, need fewer loads where very many timers are due soon, and "
        "let larger bursts fire before their results are written.",
    )
    window_bytes_max: int = setting(
        64 * 1024 * 1024,
        "Bytes of timers that a node holds in memory, likewise. Whichever of this and `window_timers_max` is reached "
        "first applies.",
    )
    look_ahead_max_us: int = setting(
        300 * SECOND,
        "How far ahead timers are loaded into memory, as far as `window_timers_max` and `window_bytes_max` allow. "
        "Higher values make fewer, larger loads; lower values take less memory.",
    )
    load_page_rows: int = setting(
        1_000,
        "Timers that one query of a load returns. Higher values need fewer round trips, each of which takes longer.",
    )
    commit_interval_us: int = setting(
        50 * MS,
        "How long results of callbacks wait for a client's write to share a commit with. Higher values commit less "
        "often and repeat more callbacks after a crash; 0 commits at once.",
        least=0,
    )
    batch_bytes_max: int = setting(
        8 * 1024 * 1024,
        "Bytes of timers in one commit; more wait for the next. Higher values need more memory and larger "
        "transactions, which the database must accept.",
    )
    pending_writes_max: int = setting(
        50_000,
        "Writes of clients that wait for a commit on a node; further ones are refused with OVERLOADED (429). With "
        "higher values clients wait longer before they are refused.",
    )
    uncommitted_results_max: int = setting(
        20_000,
        "Results of callbacks that wait in memory while a store that belongs to this node alone accepts no writes, "
        "for example because the disk is full. At this limit, or at `window_bytes_max` of their timers, nothing fires "
        "until they are written. Higher values keep firing longer and repeat more callbacks after a crash.",
    )
    write_timeout_us: int = setting(
        10 * SECOND,
        "How long a client's write may wait; then it is answered 503 and never done. Give clients a longer timeout "
        "than this. Higher values return fewer 503 while shards move between nodes; with lower values clients learn "
        "of trouble sooner.",
    )
    store_timeout_us: int = setting(
        30 * SECOND,
        "How long a commit, claim or load may take before its outcome counts as unknown and the shard is claimed "
        "again. Must be longer than the store's own timeouts, such as `database.statement_timeout`.",
    )
    retry_after_max_us: int = setting(
        24 * 3_600 * SECOND,
        "Longest delay before the next attempt that a receiver's or service's `Retry-After` header can ask for; a "
        "longer one is cut to this. With lower values a receiver can postpone its timers less.",
        topic=Topic.TIMER,
    )
    purge_interval_us: int = setting(
        10 * SECOND,
        "How often finished timers are deleted after their retention. Higher values delete more at a time, less often.",
        topic=Topic.RETENTION,
    )
    failure_retention_us: int = setting(
        FAILURE_RETENTION_US,
        "How long failed timers and failed occurrences of schedules are listed as failures, and kept at least. Higher "
        "values leave more time to replay them, for about 300 bytes of disk each beside the timer itself. Namespaces "
        'with `history: "none"` list no failures. Failed service calls are listed as long, while `agent.retention` keeps '
        "them.",
        topic=Topic.RETENTION,
    )
    occurrences_kept: int = setting(
        1_000,
        "Occurrences that the history of each schedule keeps, the newest ones, within the retention of its namespace. "
        "Each takes about 450 bytes of disk. Lower values show less of the past; up to a quarter more, at least 100, "
        "stay for a while.",
        topic=Topic.RETENTION,
    )
    heartbeat_interval_us: int = setting(
        1 * SECOND,
        "How often a node writes its heartbeat and reads those of the others; must be shorter than `node_lease`. "
        "Lower values detect failures sooner and query the store more often.",
        topic=Topic.CLUSTER,
    )
    node_lease_us: int = setting(
        3 * SECOND,
        "How long a node keeps firing after its last successful heartbeat; must be shorter than `member_timeout`, so "
        "that it stops before others take over. Higher values bridge longer outages of the database.",
        topic=Topic.CLUSTER,
    )
    member_timeout_us: int = setting(
        5 * SECOND,
        "How long a node's heartbeat must be missing before others take over its shards; also how long a node waits "
        "after its start if others are recorded, living or dead. Lower values take over sooner after a crash; if too "
        "low, a node that merely paused loses its shards.",
        topic=Topic.CLUSTER,
    )
    clock_skew_max_us: int = setting(
        500 * MS,
        "How far a node's clock may differ from the store's; beyond it the node fires nothing. With higher values "
        "timers may fire early by as much; lower values pause nodes with poorly kept clocks more often.",
        topic=Topic.CLUSTER,
    )
    namespaces_interval_us: int = setting(
        2 * SECOND,
        "How often a node reads namespaces again, to apply changes made through other nodes; must be shorter than "
        "`namespaces_lease`. Lower values apply them sooner, for more queries.",
        topic=Topic.CLUSTER,
    )
    namespaces_lease_us: int = setting(
        5 * SECOND,
        "How long a node keeps dispatching after its last successful read of the namespaces. A change of a namespace "
        "waits up to a fifth longer than this for a node that does not confirm it, before it is acknowledged. Higher "
        "values bridge longer outages of the store.",
        topic=Topic.CLUSTER,
    )
    duplicate_name_warning_interval_us: int = setting(
        60 * SECOND,
        "Shortest time between two log warnings that two live nodes have the same name. Higher values log less.",
        topic=Topic.CLUSTER,
    )
    lanes: int = setting(
        1,
        "Commits at once, each over its own connection and for a part of the shards. Higher values raise "
        "throughput where commits wait for the network, for more connections. SQLite has one writer.",
        topic=Topic.DATABASE,
    )

    # Filled by the settings of other parts (`tocsin.settings.settings.SHARED`).

    payload_bytes_max: int = 100 * 1024
    payload_depth_max: int = 100
    execute_ahead_max_us: int = 100 * 366 * 24 * 3_600 * SECOND

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
    #: Otherwise these clients and later ones would alternate, in commits of half the size.
    commit_delay_max_us: int = 2 * MS
    #: How long a finished timer waits to be deleted in one range with its neighbors before it is deleted by its key.
    exact_delete_after_us: int = 250 * MS
    #: Rows (writes, deletes, history) in one commit; more wait for the next. `batch_bytes_max` bounds larger rows.
    batch_rows_max: int = 5_000
    #: Bytes of present rows that one commit reads, should each be as large as the settings allow: changes of timers that are
    #: not in memory need them, and further ones wait for the next commit.
    fetch_bytes_max: int = 64 * 1024 * 1024
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
    #: Most time between two reads of shard ownership while each shard has the owner that it should have, and no request asks
    #: for one. Members are read at each heartbeat all the same.
    ownership_reread_interval_us: int = 5 * SECOND
    #: Longest random pause before a claim that another node won is tried again, so that nodes do not collide.
    claim_backoff_us: int = 1 * SECOND
    #: Unreadable rows of a shard, in a minute, after which the node gives the shard up for another, perhaps newer, one.
    unreadable_rows_per_minute_max: int = 5
    #: How often a node checks whether it has claimed shards whose schedules older time zones may have planned. A few seconds,
    #: so that one pass serves all shards that a node claims at its start.
    replanning_interval_us: int = 5 * SECOND
    #: How often a node checks whether counts for quotas of pending timers are due; and the time from one count of a shard to
    #: the next. It corrects what creates that replaced a timer have added, and costs a read of every pending timer.
    quota_check_interval_us: int = 1 * SECOND
    quota_count_interval_us: int = 600 * SECOND
    #: Timers of one page of such a count.
    quota_page_rows: int = 1_000
    #: How often a node asks the others what they have of the quotas.
    quota_exchange_interval_us: int = 5 * SECOND
    #: Events of one page that is read for a sink.
    sink_page_rows: int = 200
    #: How long a sink has to acknowledge an event; pauses after one that it has not taken, doubled with each that follows.
    sink_timeout_us: int = 5 * SECOND
    sink_pause_initial_us: int = 1 * SECOND
    sink_pause_max_us: int = 15 * SECOND
    #: Finished timers that one purge deletes in one transaction of a shard, so that other writes wait little.
    purge_rows: int = 2_000
