"""Every limit of the engine, by name. `tocsin.config` fills them from file, environment and flags."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """All durations in microseconds (`_us`). `docs/reference/settings.md` describes each under the same name."""

    #: How far ahead of now timers are loaded into memory. Raised: fewer, larger loads and more memory; lowered: more
    #: loads. Never more than `window_timers_max` and `window_bytes_max` allow.
    look_ahead_max_us: int = 300 * SECOND
    #: Timers asked of the store in one load. Raised: fewer round trips, each of which takes longer; lowered: the
    #: reverse.
    load_page_rows: int = 1_000
    #: Timers that a node holds in memory ahead of their instants, all shards together. Raised: more memory, and fewer
    #: loads where very many are due soon.
    window_timers_max: int = 100_000
    #: Bytes of timers' records that a node holds in memory ahead of their instants, all shards together. The first of
    #: this and `window_timers_max` that is reached counts.
    window_bytes_max: int = 64 * 1024 * 1024
    #: Callbacks under way at once on a node; one namespace alone gets 80% of it. Raised: slow receivers delay others
    #: less, for more memory and connections (`callbacks.connections_max` has to be above it). Lowered: due timers wait
    #: in memory.
    callbacks_in_flight_max: int = 1_000
    #: Callbacks under way at once to one destination (scheme, host, port). Raised: more load on each receiver;
    #: lowered: its due timers wait, and others don't.
    destination_in_flight_max: int = 256
    #: Due timers that are started before requests get their turn. Raised: bursts drain a little faster; lowered: the
    #: API answers sooner during them.
    dispatch_rows_per_turn: int = 100
    #: Callbacks under way at once to which a destination is cut down, step by step, while it doesn't answer; answers
    #: raise it again. Lowered: a hung receiver takes fewer slots; raised: it is back sooner.
    destination_in_flight_min: int = 4
    #: Due timers that wait in memory for one destination; further ones go back to the store until there is room.
    #: Raised: more memory.
    destination_waiting_max: int = 50_000
    #: Results of callbacks that may wait in memory while the store takes no writes (a full disk), where the store is this
    #: node's alone. Beyond them, or beyond `window_bytes_max` of their records, nothing fires until they are written. More
    #: take more memory, and repeat more callbacks after a crash.
    unwritten_results_max: int = 20_000
    #: How long results of callbacks wait for a client's write to share a commit with. Raised: fewer commits, and more
    #: callbacks repeated after a crash; lowered: the reverse.
    commit_interval_us: int = 50 * MS
    #: What a commit should take: results of callbacks that would make it longer wait for the next one. Raised: bursts
    #: drain faster; lowered: clients' writes wait less during them.
    commit_target_us: int = 15 * MS
    #: How long a commit may wait, and never longer than half of what the last one took, for the clients that one answered
    #: to come again: otherwise they would take turns with those who came meanwhile, in commits of half the size.
    commit_gather_max_us: int = 2 * MS
    #: How long a finished timer waits to be deleted together with its neighbours before it is deleted by its key.
    #: Raised: fewer, larger deletes, and more repeated after a crash.
    exact_delete_after_us: int = 250 * MS
    #: Rows (writes, deletes, history) in one commit; more wait for the next. Raised: more throughput, for longer
    #: waits; lowered: shorter commits.
    batch_rows_max: int = 5_000
    #: Bytes of records in one commit; more wait for the next. Raised: more memory and larger transactions, which the
    #: database has to take.
    batch_bytes_max: int = 8 * 1024 * 1024
    #: Commits at once, each over a connection and for a part of the shards, on a database server; SQLite has one
    #: writer. Raised: more throughput where the network is what commits wait for, for more connections.
    lanes: int = 1
    #: Writes of clients that wait for a commit on this node; beyond it they are refused as OVERLOADED (429). Raised:
    #: more memory and longer waits before clients are refused.
    pending_writes_max: int = 50_000
    #: How long a client's write may wait; one that still waits then is answered 503 and never done. Give clients a
    #: longer time-out than this. Raised: fewer 503 while shards change hands; lowered: they come sooner.
    write_timeout_us: int = 10 * SECOND
    #: How long a commit, claim or load may take before its outcome counts as unknown and the shard is claimed again.
    #: It has to be longer than the store's own time-outs.
    store_timeout_us: int = 30 * SECOND
    #: Pause between tries while the store fails. Lowered: back sooner after an outage, for more load on a database
    #: that is in trouble.
    store_retry_interval_us: int = 200 * MS
    #: How often a node shows the others that it lives, and reads who else does. Has to be shorter than `node_lease`.
    #: Lowered: failures are noticed sooner, for more queries.
    heartbeat_interval_us: int = 1 * SECOND
    #: How long a node goes on firing after its last heartbeat that succeeded. Has to be shorter than `member_timeout`,
    #: so that it stops before another takes over. Raised: short outages of the database are bridged.
    node_lease_us: int = 3 * SECOND
    #: How long a node has to be silent before others take its shards over. Lowered: a sooner takeover after a crash;
    #: too low, and a node that only paused loses its shards. Also how long a first node waits after its start on a
    #: database server.
    member_timeout_us: int = 5 * SECOND
    #: How long after its end a node that owns nothing stays on the list of nodes.
    member_forget_us: int = 60 * SECOND
    #: Pause, at least, between two warnings that two living nodes have one name.
    name_warning_interval_us: int = 60 * SECOND
    #: How far a node's clock may be off the store's; beyond it nothing is fired there. Raised: timers may fire early
    #: by as much; lowered: more pauses where clocks are poorly kept.
    clock_skew_max_us: int = 500 * MS
    #: How long a node that stops waits for callbacks under way; not below `callback_timeout_max`. Lowered: it ends
    #: sooner, and what it cut off is called again.
    drain_timeout_us: int = 65 * SECOND
    #: Attempts that a timer's log keeps, the latest ones. Raised: larger records.
    attempt_log_max: int = 10
    #: Greatest delay that a receiver's `Retry-After` can ask for; a longer one is cut to it.
    retry_after_max_us: int = 24 * 3_600 * SECOND
    #: How far ahead of now an instant may lie, in requests and in rescheduling answers; a later one is refused.
    execute_ahead_max_us: int = 100 * 366 * 24 * 3_600 * SECOND
    #: Bytes of a payload, in a request or in a rescheduling answer; a larger one is refused. Raised: more memory,
    #: larger commits, and messages between nodes have to take it (`cluster.frame_bytes_max`).
    payload_bytes_max: int = 100 * 1024
    #: Arrays and objects within one another in a payload, in a request or in a rescheduling answer; a deeper one is
    #: refused. It protects whatever reads the payload later.
    payload_depth_max: int = 100
    #: Suspended timers that are resumed in one transaction of a shard. Raised: a namespace resumes faster, in longer
    #: transactions.
    resume_rows: int = 1_000
    #: How long a node leaves a shard alone that it had to give up (rows that it can't read, a newer format) before it
    #: claims it again.
    shun_us: int = 60 * SECOND
    #: Pause before a single change that the store refused (a retry, a delete) is tried once more.
    refused_interval_us: int = 60 * SECOND
    #: Least pause between two reads of who owns which shard, however often requests ask for it. Lowered: new owners
    #: are found sooner, for more queries during takeovers.
    look_interval_us: int = 50 * MS
    #: Greatest random pause before a claim that another node won is tried again. Raised: fewer collisions of many
    #: nodes; lowered: sooner takeovers.
    claim_backoff_us: int = 1 * SECOND
    #: How often namespaces are read again, so that changes made at other nodes count here. Has to be shorter than
    #: `namespaces_lease`.
    namespaces_interval_us: int = 2 * SECOND
    #: A node dispatches only while its last successful reading of the namespaces was begun less than this ago. A change of a
    #: namespace waits for a node that does not confirm it for a fifth longer, and is acknowledged then.
    namespaces_lease_us: int = 5 * SECOND
    #: Rows of a shard, in a minute, that can't be read before the node gives the shard up for another, perhaps newer,
    #: one.
    bad_rows_per_minute_max: int = 5
    #: How often history whose retention is over is removed. Raised: larger removals, less often.
    purge_interval_us: int = 10 * SECOND
    #: Finished timers that one such removal takes in one transaction. Raised: history shrinks faster, in longer
    #: transactions.
    purge_rows: int = 2_000
