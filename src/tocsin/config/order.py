"""The settings by topic, in the order in which people look for them: for the reference page and `tocsin config show`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tocsin.config.settings import Settings, setting_name


class Topic(NamedTuple):
    """Settings that belong together. Each of `names` is a setting, or a pattern for those that no other topic names."""

    title: str
    intro: str
    names: tuple[str, ...]


TOPICS = (
    Topic(
        "Where it listens, and where data is",
        "",
        ("host", "port", "data_dir", "store", "shards", "workers", "history_retention", "namespace_num_shards"),
    ),
    Topic(
        "Who may use it",
        "[How to secure a server](../how-to/secure.md).",
        ("insecure", "ui.origins", "trusted_proxies", "metrics_open", "keys_refresh", "keys_expiry_notice",
         "audit_retention", "ui.session_*", "ui.sign_in*"),
    ),
    Topic("What may be called", "", ("egress.allow", "egress.allow_private")),
    Topic("Log, and stopping", "", ("log_level", "log_format", "drain_timeout", "cluster.leave_delay")),
    Topic(
        "Throughput and memory",
        "[How to tune](../how-to/tune.md) says when to look at which.",
        ("callbacks_in_flight_max", "destination_*", "window_*", "lanes", "commit_*", "batch_*", "pending_writes_max",
         "write_timeout", "unwritten_results_max", "look_ahead_max", "load_page_rows", "dispatch_rows_per_turn"),
    ),
    Topic(
        "What timers may ask for",
        "",
        ("payload_*", "callback_timeout_*", "attempts_max", "attempt_log_max", "retry_*", "backoff_multiplier_max",
         "execute_*", "id_chars_max", "url_*", "tag*", "header*", "retention_max", "num_shards_max", "list_rows_max",
         "cursor_chars_max"),
    ),
    Topic(
        "Several nodes",
        "[How to run several](../how-to/several-nodes.md).",
        ("node_name", "advertise", "cluster.port", "cluster.secret", "member_timeout", "node_lease", "heartbeat_interval",
         "clock_skew_max", "member_forget", "name_warning_interval", "namespaces_*", "claim_backoff", "look_interval",
         "cluster.worker_*", "cluster.agent_*", "cluster.*"),
    ),
    Topic(
        "Service calls",
        "[The service agent](../explanation/service-agent.md).",
        ("agent.enabled", "agent.database", "agent.timer", "agent.request_*", "agent.retention", "agent.executions_*",
         "agent.*"),
    ),
    Topic(
        "Messages of the service agent",
        "Within the process, or [on NATS](../how-to/nats.md).",
        ("broker", "broker_prefix", "bus.*"),
    ),
    Topic("SQLite", "", ("sqlite.synchronous", "sqlite.*")),
    Topic("PostgreSQL", "[How to keep timers there](../how-to/postgresql.md).", ("postgresql.*",)),
    Topic("MySQL and MariaDB", "[How to keep timers there](../how-to/mysql.md).", ("mysql.durable", "mysql.*")),
    Topic("DynamoDB", "[How to keep timers there](../how-to/dynamodb.md).", ("dynamodb.*",)),
    Topic(
        "The service agent's database",
        "Beside `sqlite.synchronous` and `sqlite.busy_timeout`, which hold for it too.",
        ("agent_sql.*",),
    ),
    Topic("Requests of clients", "", ("api.*", "keep_alive_timeout")),
    Topic("The HTTP client for callbacks", "", ("callbacks.*",)),
    Topic("Web pages", "", ("ui.*",)),
    Topic("Other limits of the engine", "", ("*",)),
)  # fmt: skip


def topics() -> list[tuple[Topic, list[str]]]:
    """The fields of each topic, in order. Every setting is in one of them, the name of the file itself aside."""
    names = {setting_name(field): field for field in Settings.model_fields if field != "config"}
    places = [(number, pattern) for number, topic in enumerate(TOPICS) for pattern in topic.names]
    ranks = {pattern: rank for rank, (_, pattern) in enumerate(places)}
    # A whole name counts more than a pattern, an earlier pattern more than a later one.
    first = {
        name: ranks[name]
        if name in ranks
        else next(rank for rank, (_, pattern) in enumerate(places) if fnmatchcase(name, pattern))
        for name in names
    }
    ordered = sorted(names, key=lambda name: first[name])
    return [
        (topic, [names[name] for name in ordered if places[first[name]][0] == number])
        for number, topic in enumerate(TOPICS)
    ]
