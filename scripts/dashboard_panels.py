"""What the Grafana dashboards show: `scripts/dashboards.py` makes them from these tables.

In an expression `NODE` stands for the selector of the chosen jobs and instances, `SPACE` for that and the chosen namespaces,
and `RANGE` for the range of a rate.
"""

from __future__ import annotations

from typing import NamedTuple


class Panel(NamedTuple):
    """A panel: its title, what it shows and when to worry, Grafana's unit, and expressions with their legends."""

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "lines"  # or stack, heatmap, number


class Board(NamedTuple):
    """A dashboard. With `namespaces` it has a variable for them."""

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    namespaces: bool = False


def quantile(q: float, histogram: str, by: str = "") -> str:
    """A quantile of a histogram over the chosen nodes."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket{{NODE}}[RANGE])))"


def rate(counter: str, by: str = "", where: str = "NODE") -> str:
    """The sum of a counter's rates, by some of its labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({counter}{{{where}}}[RANGE]))"


def quantiles(histogram: str) -> tuple[tuple[str, str], ...]:
    """The median and the 99th percentile."""
    return (quantile(0.5, histogram), "p50"), (quantile(0.99, histogram), "p99")


_NODE = "{{instance}}"

TIMERS = Board(
    "tocsin-timers",
    "Tocsin: timers",
    "Are timers on time, and do they succeed?",
    (
        Panel(
            "Error budget left, 30 days",
            "What is left of the 0.1% of firings that may be more than a second late. Below 0 the objective is missed.",
            "percentunit",
            (
                (
                    '1 - (1 - sum(rate(tocsin_lag_seconds_bucket{NODE,le="1.0"}[30d]))'
                    " / (sum(rate(tocsin_lag_seconds_count{NODE}[30d])) > 0)) / 0.001",
                    "left",
                ),
            ),
            "number",
        ),
        Panel(
            "Overdue",
            "How long the oldest due timer of each node has waited for its attempt. It falls back to 0 within a second.",
            "s",
            (("tocsin_overdue_seconds{NODE}", _NODE),),
        ),
        Panel(
            "Lag",
            "From a timer's due time to the first byte of its request.",
            "s",
            quantiles("tocsin_lag_seconds"),
        ),
        Panel(
            "Lag, distribution",
            "How many firings had which lag. Bands far up are bursts, outages or slow destinations.",
            "s",
            (("sum by (le) (increase(tocsin_lag_seconds_bucket{NODE}[RANGE]))", "{{le}}"),),
            "heatmap",
        ),
        Panel(
            "Attempts by outcome",
            "Callbacks per second. Retried ones are tried again, failed ones are not.",
            "ops",
            ((rate("tocsin_attempts_total", "outcome", "SPACE"), "{{outcome}}"),),
            "stack",
        ),
        Panel(
            "Failures by namespace",
            "Timers per second that failed finally, and retries.",
            "ops",
            (
                (rate("tocsin_attempts_total", "namespace", 'SPACE,outcome="failed"'), "{{namespace}} failed"),
                (rate("tocsin_attempts_total", "namespace", 'SPACE,outcome="retried"'), "{{namespace}} retried"),
            ),
        ),
        Panel(
            "Creates",
            "Timers per second that were created or replaced.",
            "ops",
            ((rate("tocsin_timers_created_total", "namespace", "SPACE"), "{{namespace}}"),),
            "stack",
        ),
        Panel(
            "Changes",
            "Timers per second that clients updated or deleted.",
            "ops",
            ((rate("tocsin_timers_changed_total", "kind", "SPACE"), "{{kind}}"),),
            "stack",
        ),
        Panel(
            "Duration of callbacks",
            "From the start of an attempt to the end of the response: how slow the receivers are.",
            "s",
            quantiles("tocsin_callback_duration_seconds"),
        ),
        Panel(
            "Callbacks in flight",
            "A node has at most `callbacks_in_flight_max` at once, and four times as many messages to NATS subjects.",
            "short",
            (
                ("tocsin_callbacks_in_flight{NODE}", _NODE),
                ("tocsin_messages_in_flight{NODE} > 0", f"{_NODE} messages"),
            ),
        ),
        Panel(
            "Deferred timers",
            "Due timers that wait because their destination or namespace is at its limit.",
            "short",
            (("tocsin_timers_deferred{NODE}", _NODE),),
        ),
        Panel(
            "Open breakers",
            "For how long the breakers of destinations have been open, on the node where that is longest. Their timers wait.",
            "s",
            (("max by (destination) (tocsin_breaker_open_seconds{NODE})", "{{destination}}"),),
        ),
        Panel(
            "Timers and calls that wait for flows",
            "Due timers and service calls within the limits of their flow, of the rules that have the most. Their limits ask "
            "for it.",
            "short",
            (("sum by (namespace, flow) (tocsin_flow_timers_waiting{NODE})", "{{namespace}} {{flow}}"),),
        ),
        Panel(
            "Events for sinks",
            "Events of namespaces with a sink: published per second, and removed before their sink has taken them.",
            "ops",
            (
                (rate("tocsin_sink_published_total"), "published"),
                (rate("tocsin_sink_lost_total", "reason"), "lost: {{reason}}"),
            ),
        ),
        Panel(
            "Sinks behind",
            "Events that wait for sinks, and for how long the one that is furthest behind has taken nothing, in seconds.",
            "short",
            (
                ("sum(tocsin_sink_backlog{NODE})", "waiting"),
                ("max(tocsin_sink_behind_seconds{NODE})", "behind, seconds"),
            ),
        ),
        Panel(
            "Inbox",
            "Rows per second of the inbox: their timers were created, they are dead (refused for good), or they "
            "wait (refused for the moment).",
            "ops",
            ((rate("tocsin_inbox_rows_total", "outcome"), "{{outcome}}"),),
            "stack",
        ),
        Panel(
            "Lag of the inbox",
            "From the writing of a row, before its commit, to its durable timer; the oldest of those created together.",
            "s",
            quantiles("tocsin_inbox_lag_seconds"),
        ),
        Panel(
            "Inbox behind",
            "Age of the oldest row that waits, counted every minute, and for how long the inbox's database has not answered.",
            "s",
            (
                ("max(tocsin_inbox_oldest_seconds{NODE})", "oldest row"),
                ("max(tocsin_inbox_away_seconds{NODE})", "database away"),
            ),
        ),
        Panel(
            "Suspended and expired timers",
            "Per second. A bad record is a stored timer that cannot be read.",
            "ops",
            (
                (rate("tocsin_timers_suspended_total", "reason"), "suspended: {{reason}}"),
                (rate("tocsin_timers_expired_total", "namespace", "SPACE"), "expired: {{namespace}}"),
            ),
        ),
        Panel(
            "Occurrences of schedules",
            "Occurrences per second that ended, by outcome.",
            "ops",
            ((rate("tocsin_occurrences_total", "outcome", "SPACE"), "{{outcome}}"),),
            "stack",
        ),
        Panel(
            "Missed instants of schedules",
            "Instants that passed and did not fire, by reason.",
            "ops",
            ((rate("tocsin_occurrences_missed_total", "reason", "SPACE"), "{{reason}}"),),
            "stack",
        ),
        Panel(
            "Periods of monitors",
            "Periods per second that ended, by outcome. Excused: a report may have been lost while Tocsin could not take it.",
            "ops",
            ((rate("tocsin_monitor_periods_total", "outcome", "SPACE"), "{{outcome}}"),),
            "stack",
        ),
        Panel(
            "Trouble of monitors",
            "Per second: notifications of late, failed and recovered jobs; and pings to unknown URLs.",
            "ops",
            (
                (
                    rate("tocsin_monitors_changed_total", "kind", 'SPACE,kind=~"late|failed|recovered"'),
                    "{{kind}}",
                ),
                (
                    rate("tocsin_authentication_failures_total", where='NODE,reason="unknown_token"'),
                    "pings refused",
                ),
            ),
        ),
    ),
    namespaces=True,
)

CLUSTER = Board(
    "tocsin-cluster",
    "Tocsin: cluster",
    "Do the nodes work, and do they share the work?",
    (
        Panel(
            "Dispatching",
            "1 while a node fires timers, 0 while it has paused. `/readyz` has the reason.",
            "short",
            (("tocsin_dispatching{NODE}", _NODE),),
        ),
        Panel(
            "Shards by node",
            "Every shard has one owner. The sum is constant but for moments.",
            "short",
            (("tocsin_shards_owned{NODE}", _NODE),),
            "stack",
        ),
        Panel(
            "Claims and losses",
            "Shards per second that changed owners. More than a few outside of deployments is trouble.",
            "ops",
            (
                (rate("tocsin_claims_total"), "claimed"),
                (rate("tocsin_claim_failures_total"), "claims that failed"),
                (rate("tocsin_shards_lost_total", "reason"), "lost: {{reason}}"),
            ),
        ),
        Panel(
            "Forwarded writes",
            "Clients' writes per second that went to the node which owns the timer, by outcome.",
            "ops",
            ((rate("tocsin_writes_forwarded_total", "outcome"), "{{outcome}}"),),
            "stack",
        ),
        Panel(
            "Shards without an owner",
            "Shards that no node owns, as each node sees it, and clients' writes that wait for them.",
            "short",
            (
                ("tocsin_shards_without_owner{NODE}", _NODE),
                ("tocsin_writes_without_owner{NODE}", "writes on {{instance}}"),
            ),
        ),
        Panel(
            "Requests by status",
            "Answers of the API per second. 429 and 503 are to be retried by clients.",
            "ops",
            ((rate("tocsin_requests_total", "status"), "{{status}}"),),
            "stack",
        ),
        Panel(
            "Duration of requests, p99",
            "By operation. A create includes the commit.",
            "s",
            ((quantile(0.99, "tocsin_request_duration_seconds", "operation"), "{{operation}}"),),
        ),
        Panel(
            "Peer connections lost or refused",
            "Per second, by node.",
            "ops",
            (
                (rate("tocsin_peer_losses_total", "instance"), _NODE),
                (rate("tocsin_peers_refused_total", "instance"), "refused by {{instance}}"),
            ),
        ),
        Panel(
            "Clock offset",
            "Each node's clock minus the store's. Beyond `clock_skew_max` a node fires nothing.",
            "s",
            (("tocsin_clock_offset_seconds{NODE}", _NODE),),
        ),
        Panel(
            "Heartbeat failures",
            "Heartbeats per second that could not be written.",
            "ops",
            ((rate("tocsin_heartbeat_failures_total", "instance"), _NODE),),
        ),
        Panel(
            "Window",
            "Timers in memory before they are due.",
            "short",
            (("tocsin_window_timers{NODE}", _NODE),),
        ),
        Panel(
            "Client connections",
            "Open connections of clients.",
            "short",
            (("tocsin_client_connections{NODE}", _NODE),),
        ),
        Panel(
            "Audit trail",
            "Entries per second that could not be stored immediately, and records that the export dropped; both are to be 0.",
            "ops",
            (
                (rate("tocsin_audit_write_failures_total"), "not stored immediately"),
                (rate("tocsin_audit_export_dropped_total", "sink"), "dropped, {{sink}}"),
            ),
        ),
        Panel(
            "Processor time",
            "Cores that each node uses. A node with one worker cannot use more than one for its engine.",
            "short",
            ((rate("process_cpu_seconds_total", "instance"), _NODE),),
        ),
        Panel(
            "Memory",
            "Resident memory of each node.",
            "bytes",
            (("process_resident_memory_bytes{NODE}", _NODE),),
        ),
        Panel(
            "File descriptors",
            "The share of its file descriptors that each node uses.",
            "percentunit",
            (("process_open_fds{NODE} / process_max_fds{NODE}", _NODE),),
        ),
    ),
)

STORE = Board(
    "tocsin-store",
    "Tocsin: store",
    "Does the database accept writes, and how fast?",
    (
        Panel(
            "Commits by result",
            "Transactions per second. Any result other than durable means that the store fails.",
            "ops",
            ((rate("tocsin_commits_total", "result"), "{{result}}"),),
            "stack",
        ),
        Panel(
            "Duration of commits",
            "Clients wait for these.",
            "s",
            quantiles("tocsin_commit_duration_seconds"),
        ),
        Panel(
            "Rows of a commit",
            "Many rows share a commit when many clients write at once.",
            "short",
            quantiles("tocsin_commit_rows"),
        ),
        Panel(
            "Loaded timers",
            "Rows per second that were read into memory, and failed reads.",
            "ops",
            (
                (rate("tocsin_rows_loaded_total"), "rows"),
                (rate("tocsin_load_failures_total"), "failed reads"),
                (rate("tocsin_namespaces_damaged_total"), "damaged namespaces"),
            ),
        ),
        Panel(
            "Duration of loads",
            "Of one page of timers.",
            "s",
            quantiles("tocsin_load_duration_seconds"),
        ),
        Panel(
            "Writes that wait",
            "Clients' writes that wait for the next commit. At `pending_writes_max` clients are answered 429.",
            "short",
            (("tocsin_writes_waiting{NODE}", _NODE),),
        ),
        Panel(
            "Results that wait",
            "Results of callbacks that no commit has written yet; a node that is killed repeats these callbacks. They count "
            "in `window_timers_max`, and at that limit firing waits for commits.",
            "short",
            (("tocsin_results_waiting{NODE}", _NODE),),
        ),
        Panel(
            "Refused writes",
            "Writes of single timers per second that the store refuses.",
            "ops",
            ((rate("tocsin_writes_refused_total", "instance"), _NODE),),
        ),
        Panel(
            "Purged history",
            "Finished timers per second that retention removed.",
            "ops",
            ((rate("tocsin_history_purged_total"), "purged"),),
        ),
        Panel(
            "SQLite: files and free space",
            "Bytes of the databases and their logs, and what is left on their disk. Empty with a database server.",
            "bytes",
            (
                ("tocsin_store_bytes{NODE}", "{{instance}} {{file}}"),
                ("tocsin_store_free_bytes{NODE}", "{{instance}} free"),
            ),
        ),
        Panel(
            "DynamoDB: capacity units",
            "Units per second that the database charged for. Empty with other stores.",
            "short",
            ((rate("tocsin_store_units_total", "kind"), "{{kind}}"),),
            "stack",
        ),
        Panel(
            "DynamoDB: repeated requests",
            "Requests per second that were sent again, by reason. Empty with other stores.",
            "ops",
            ((rate("tocsin_store_requests_repeated_total", "reason"), "{{reason}}"),),
        ),
        Panel(
            "DynamoDB: largest shard",
            "DynamoDB allows 10 GiB for a shard. 0 with other stores.",
            "bytes",
            (("max(tocsin_shard_size_bytes_max{NODE})", "largest"),),
        ),
    ),
)

AGENT = Board(
    "tocsin-agent",
    "Tocsin: service calls",
    "Does the agent run, and do service calls start on time and end?",
    (
        Panel(
            "Where it runs",
            "1 on the node that runs the agent. The sum is 1.",
            "short",
            (("tocsin_agent_running{NODE}", _NODE),),
            "stack",
        ),
        Panel(
            "Service calls by status",
            "Calls per second that entered a status.",
            "ops",
            ((rate("tocsin_agent_calls_total", "status"), "{{status}}"),),
            "stack",
        ),
        Panel(
            "Lag of starts",
            "From a call's due time to the command to execute it.",
            "s",
            quantiles("tocsin_agent_start_lag_seconds"),
        ),
        Panel(
            "Executions",
            "Requests to services per second, by result.",
            "ops",
            ((rate("tocsin_agent_executions_total", "result"), "{{result}}"),),
            "stack",
        ),
        Panel(
            "Duration of executions",
            "How slow the services are.",
            "s",
            quantiles("tocsin_agent_execution_duration_seconds"),
        ),
        Panel(
            "Executions in flight and waiting",
            "Deferred ones wait for a free slot, suspended ones for their flow.",
            "short",
            (
                ("sum(tocsin_agent_executions_in_flight{NODE})", "in flight"),
                ("sum(tocsin_agent_executions_deferred{NODE})", "deferred"),
                ("sum(tocsin_agent_executions_suspended{NODE})", "suspended"),
            ),
        ),
        Panel(
            "Polls for due calls",
            "Per second, by result.",
            "ops",
            ((rate("tocsin_agent_polls_total", "result"), "{{result}}"),),
            "stack",
        ),
        Panel(
            "Outbox",
            "Messages that the bus has not accepted yet, and how long the slowest of a hundred waits.",
            "short",
            (
                ("sum(tocsin_agent_outbox_waiting{NODE})", "waiting"),
                (quantile(0.99, "tocsin_agent_outbox_lag_seconds"), "p99 lag, seconds"),
            ),
        ),
        Panel(
            "Dead letters and suspended messages",
            "Messages per second that nobody will handle again.",
            "ops",
            (
                (rate("tocsin_agent_dead_letters_total", "subscriber"), "dead: {{subscriber}}"),
                (rate("tocsin_agent_messages_suspended_total", "type"), "suspended: {{type}}"),
            ),
        ),
        Panel(
            "Rescued calls",
            "Overdue calls per second that the watchdog acted on.",
            "ops",
            ((rate("tocsin_agent_calls_rescued_total", "action"), "{{action}}"),),
        ),
        Panel(
            "Broker",
            "1 while the broker is reachable.",
            "short",
            (("tocsin_agent_broker_connected{NODE}", _NODE),),
        ),
        Panel(
            "Messages that wait on the bus",
            "They have arrived and are not handled yet.",
            "short",
            (("tocsin_agent_messages_waiting{NODE}", _NODE),),
        ),
    ),
)

BOARDS = (TIMERS, CLUSTER, STORE, AGENT)
