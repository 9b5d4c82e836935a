"""The timer service's metrics: an observer of the engine's events."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric

from tocsin import __version__
from tocsin.build_info import commit
from tocsin.ports import observer as events
from tocsin.ports.observer import Event
from tocsin.telemetry.limits import NAMESPACES_MAX
from tocsin.telemetry.requests import RequestMetrics
from tocsin.telemetry.tally import DURATION_SECONDS, LAG_SECONDS, Tally

_ROWS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)

#: The label of all other namespaces. The prefix is reserved, so none has this name.
OTHER_NAMESPACES = "tocsin.other"

#: Every counter: name, labels, help. `docs/reference/metrics.md` is made from these tables.
COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "tocsin_timers_created": (("namespace",), "Timers durably created or replaced."),
    "tocsin_timers_changed": (("namespace", "kind"), "Timers durably updated or deleted."),
    "tocsin_occurrences": (
        ("namespace", "source", "outcome"),
        "Occurrences of schedules that ended: completed, failed, expired.",
    ),
    "tocsin_occurrences_missed": (
        ("namespace", "reason"),
        "Instants of schedules that did not fire: late, overlap, window (older than the catch-up window), paused. At most "
        "1,000 are counted at once.",
    ),
    "tocsin_schedules_changed": (
        ("namespace", "kind"),
        "Schedules durably created, changed, paused, resumed, replanned, ended.",
    ),
    "tocsin_attempts": (
        ("namespace", "outcome"),
        "Attempts by outcome: done, rescheduled, retried, failed, superseded.",
    ),
    "tocsin_attempts_not_sent": (
        ("code",),
        "Requests that could not be sent because of a local shortage; they do not count as attempts and are retried.",
    ),
    "tocsin_timers_expired": (
        ("namespace", "status"),
        "Timers that ended without another attempt, because their `expireAfter` was over, by status: expired (no attempt was "
        "made), failed.",
    ),
    "tocsin_commits": (("result",), "Transactions by result: durable, definite (failed), unavailable, unknown, read."),
    "tocsin_rows_loaded": ((), "Timers loaded from the store into the windows."),
    "tocsin_load_failures": ((), "Failed reads of the store, which are retried."),
    "tocsin_namespaces_damaged": ((), "Namespaces whose stored record was found damaged."),
    "tocsin_records_damaged": (("kind",), "Times that a damaged record was left out of what was read, by kind."),
    "tocsin_claims": ((), "Shards claimed."),
    "tocsin_claim_failures": ((), "Claims that failed or were lost to another node."),
    "tocsin_shards_lost": (("reason",), "Shards that this node lost, by reason."),
    "tocsin_timers_suspended": (
        ("reason",),
        "Timers suspended, by reason: namespace, destination, egress or bad_record.",
    ),
    "tocsin_timers_resumed": ((), "Suspended timers that were resumed."),
    "tocsin_writes_refused": (
        (),
        "Writes of single timers that the store refused and that were removed from their batch.",
    ),
    "tocsin_heartbeat_failures": ((), "Heartbeats that could not be written to the store."),
    "tocsin_history_purged": ((), "Finished timers and runs removed by retention."),
    "tocsin_writes_forwarded": (
        ("outcome",),
        "Client writes forwarded to other nodes, by outcome: answered, moved, unknown.",
    ),
    "tocsin_forward_messages": ((), "Messages with forwarded client writes; many writes share a message."),
    "tocsin_peer_losses": ((), "Connections to other nodes that closed or could not be established."),
    "tocsin_authentication_failures": (
        ("reason",),
        "Requests and sign-ins with an invalid key, by reason: unknown_key, expired_key, malformed.",
    ),
    "tocsin_audit_write_failures": ((), "Audit entries that could not be stored immediately; they are retried."),
    "tocsin_clients_refused": (
        ("reason",),
        "Clients refused before their request was complete, by reason: not HTTP, too many connections, bodies take too much "
        "memory; clients cut off because unread responses take too much memory; and the number of seconds without a free "
        "file descriptor.",
    ),
    "tocsin_peers_refused": (
        ("reason",),
        "Connections refused because the peer did not prove to be a node of the cluster, by reason: secret, tls (no valid "
        "certificate), plain (without TLS), connections (too many).",
    ),
    "tocsin_peer_certificate_reads": (
        ("result",),
        "Reads of the files with the certificate for other nodes, at the start and after changes, by result: loaded, failed.",
    ),
    "tocsin_store_requests_repeated": (
        ("reason",),
        "Requests sent to DynamoDB again, by reason: throttled, conflict, unprocessed, unanswered, unreachable.",
    ),
    "tocsin_store_units": (("kind",), "Capacity units consumed in DynamoDB, by kind: read, write."),
}
#: Counters that start at 0 for each value of their label.
_FROM_ZERO = {
    "tocsin_commits": ("durable", "definite", "unavailable", "unknown", "read"),
    "tocsin_timers_suspended": ("namespace", "destination", "egress", "bad_record"),
    "tocsin_peers_refused": ("secret", "tls", "plain", "connections"),
    "tocsin_peer_certificate_reads": ("loaded", "failed"),
}
#: Every histogram: name, bucket bounds, help.
HISTOGRAMS: dict[str, tuple[tuple[float, ...], str]] = {
    "tocsin_lag_seconds": (
        LAG_SECONDS,
        "From an attempt's due time, or its acceptance if later, to the first byte of its request.",
    ),
    "tocsin_callback_duration_seconds": (DURATION_SECONDS, "From the start of an attempt to the end of the response."),
    "tocsin_commit_duration_seconds": (DURATION_SECONDS, "Duration of one transaction in the store."),
    "tocsin_commit_rows": (_ROWS, "Upserts, deletes and history rows in one transaction."),
    "tocsin_load_duration_seconds": (DURATION_SECONDS, "Duration of loading one page of timers."),
}
#: Every gauge: name, help. Their values are read at the scrape.
GAUGES: dict[str, str] = {
    "tocsin_callbacks_in_flight": "Callbacks in flight.",
    "tocsin_callback_connections": "Connections to timers' receivers, open or being opened, including idle ones.",
    "tocsin_agent_connections": "Connections to services for the agent's calls, open or being opened, including idle ones.",
    "tocsin_names_resolving": "Host names being resolved, for timers and service calls.",
    "tocsin_timers_deferred": "Due timers that wait in memory because their destination or namespace is at its limit.",
    "tocsin_destinations": "Destinations in use or backing off.",
    "tocsin_overdue_seconds": "How long the oldest due timer has waited for its attempt; 0 if none waits.",
    "tocsin_window_timers": "Timers in the windows, in memory.",
    "tocsin_window_bytes": "Bytes of stored records in the windows, in memory.",
    "tocsin_writes_waiting": "Client writes that wait for the next transaction.",
    "tocsin_client_connections": "Open connections of clients.",
    "tocsin_request_bodies_bytes": "Bytes reserved for incomplete request bodies.",
    "tocsin_unread_responses_bytes": "Bytes of responses that clients have not read yet.",
    "tocsin_shards_owned": "Shards that this node owns.",
    "tocsin_node_names_shared": "Names that several living nodes have, of which only one gets shards, as this node sees it.",
    "tocsin_nodes_secret_differs": "Living nodes whose cluster.secret differs from that of nodes that started earlier, so "
    "that they own no shards, as this node sees it.",
    "tocsin_shards_without_owner": "Shards that no node owns, as this node sees it.",
    "tocsin_dispatching": "1 while due timers are dispatched, 0 while dispatch is paused.",
    "tocsin_writes_without_owner": "Client writes that wait because their shard has no owner.",
    "tocsin_api_keys_expiring": "API keys that expire within `keys_expiry_notice`, or have expired and still exist.",
    "tocsin_shard_size_bytes_max": "Size of the largest shard: in DynamoDB estimated, of those that "
    "this node writes, with a limit of 10 GiB; in Cassandra of all, as its nodes report it.",
    "tocsin_peer_certificate_expiry_timestamp_seconds": "When the certificate for other nodes expires; 0 without TLS.",
    "tocsin_clock_offset_seconds": "This node's clock minus the store's, at the last heartbeat.",
}


#: Stands for the largest shard, where the database does not report which one that is.
_LARGEST = -1

#: Metrics whose value is always 1, and whose labels have the information: name, help.
INFOS: dict[str, str] = {"tocsin_build_info": "Always 1. Its labels are the version, the commit and Python's version."}


class Metrics(Tally):
    """Counts events for Prometheus. Each scrape calls `gauges` for the values of GAUGES. The first `namespaces_max`
    namespaces have series of their own."""

    def __init__(self, gauges: Callable[[], dict[str, float]], namespaces_max: int = NAMESPACES_MAX) -> None:
        self._namespaces_max = namespaces_max
        self._namespaces: set[str] = set()
        self._clock_offset_s = 0.0
        self._certificate_ends_s = 0
        self._shard_bytes: dict[int, int] = {}
        super().__init__(COUNTERS, HISTOGRAMS, GAUGES, lambda: gauges() | self._learned(), _FROM_ZERO)
        #: Gets each response of the API.
        self.requests = RequestMetrics()
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.registry.register(self.requests)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def collect(self) -> Iterator[Metric]:
        """All metric families, for the registry."""
        yield from super().collect()
        for name, text in INFOS.items():
            build = {"version": __version__, "commit": commit(), "python": platform.python_version()}
            family = GaugeMetricFamily(name, text, labels=list(build))
            family.add_metric(list(build.values()), 1)
            yield family

    def largest_shard_bytes(self) -> int | None:
        """The size of the largest shard that the database reported; None if it reports none."""
        return max(self._shard_bytes.values(), default=None)

    def _learned(self) -> dict[str, float]:
        """The gauges whose values come with events."""
        return {
            "tocsin_clock_offset_seconds": self._clock_offset_s,
            "tocsin_peer_certificate_expiry_timestamp_seconds": self._certificate_ends_s,
            "tocsin_shard_size_bytes_max": self.largest_shard_bytes() or 0,
        }

    def exposition(self) -> tuple[bytes, str]:
        """The body and content type of a scrape."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def __call__(self, event: Event) -> None:
        """Counts the event."""
        if isinstance(event, events.AttemptFinished):
            self.count_in("tocsin_attempts", event, event.outcome)
            if event.lag_us is not None:
                self.observe("tocsin_lag_seconds", event.lag_us / 1e6)
            self.observe("tocsin_callback_duration_seconds", event.duration_us / 1e6)
            return
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def count_in(self, name: str, event: Any, *labels: str, by: float = 1) -> None:
        """Adds to a counter of the event's namespace, or of all those beyond the limit."""
        namespace: str = event.namespace
        if namespace not in self._namespaces:
            if len(self._namespaces) >= self._namespaces_max:
                namespace = OTHER_NAMESPACES
            else:
                self._namespaces.add(namespace)
        self.count(name, namespace, *labels, by=by)

    def _committed(self, event: events.BatchCommitted) -> None:
        self.count("tocsin_commits", "durable")
        self.observe("tocsin_commit_duration_seconds", event.duration_us / 1e6)
        self.observe("tocsin_commit_rows", event.upserts + event.deletes + event.history)

    def _loaded(self, event: events.PageLoaded) -> None:
        self.count("tocsin_rows_loaded", by=event.rows)
        self.observe("tocsin_load_duration_seconds", event.duration_us / 1e6)

    def _size(self, event: events.ShardSizeEstimated) -> None:
        self._shard_bytes[event.shard_id] = event.size_bytes

    def _measured(self, event: events.PartitionSizeMeasured) -> None:
        self._shard_bytes[_LARGEST] = event.size_bytes

    def _left(self, event: events.ShardLost | events.ShardReleased) -> None:
        self._shard_bytes.pop(event.shard_id, None)

    def _lost(self, event: events.ShardLost) -> None:
        self.count("tocsin_shards_lost", event.reason)
        self._left(event)

    def _certificate(self, event: events.PeerCertificateLoaded) -> None:
        self.count("tocsin_peer_certificate_reads", "loaded")
        self._certificate_ends_s = event.ends_at

    def _offset(self, event: events.ClockOffset) -> None:
        self._clock_offset_s = event.offset_us / 1e6


_HANDLERS: dict[type, Callable[[Metrics, Event], None]] = {
    events.TimersCreated: lambda m, e: m.count_in("tocsin_timers_created", e, by=e.timers),  # type: ignore[union-attr]
    events.TimersChanged: lambda m, e: m.count_in("tocsin_timers_changed", e, e.kind, by=e.timers),  # type: ignore[union-attr]
    events.OccurrenceEnded: lambda m, e: m.count_in("tocsin_occurrences", e, e.source, e.outcome),  # type: ignore[union-attr]
    events.OccurrencesMissed: lambda m, e: m.count_in("tocsin_occurrences_missed", e, e.reason, by=e.instants),  # type: ignore[union-attr]
    events.ScheduleChanged: lambda m, e: m.count_in("tocsin_schedules_changed", e, e.kind),  # type: ignore[union-attr]
    events.AttemptNotSent: lambda m, e: m.count("tocsin_attempts_not_sent", e.code),  # type: ignore[union-attr]
    events.TimerExpired: lambda m, e: m.count_in("tocsin_timers_expired", e, e.status),  # type: ignore[union-attr]
    events.BatchCommitted: Metrics._committed,  # type: ignore[dict-item]
    events.BatchFailed: lambda m, e: m.count("tocsin_commits", e.kind),  # type: ignore[union-attr]
    events.PageLoaded: Metrics._loaded,  # type: ignore[dict-item]
    events.LoadFailed: lambda m, e: m.count("tocsin_load_failures"),
    events.NamespaceDamaged: lambda m, e: m.count("tocsin_namespaces_damaged"),
    events.RecordDamaged: lambda m, e: m.count("tocsin_records_damaged", e.kind),  # type: ignore[union-attr]
    events.ShardClaimed: lambda m, e: m.count("tocsin_claims"),
    events.ClaimFailed: lambda m, e: m.count("tocsin_claim_failures"),
    events.ShardLost: Metrics._lost,  # type: ignore[dict-item]
    events.ShardReleased: Metrics._left,  # type: ignore[dict-item]
    events.StoreRequestRepeated: lambda m, e: m.count("tocsin_store_requests_repeated", e.reason),  # type: ignore[union-attr]
    events.StoreUnitsConsumed: lambda m, e: m.count("tocsin_store_units", e.kind, by=e.units),  # type: ignore[union-attr]
    events.ShardSizeEstimated: Metrics._size,  # type: ignore[dict-item]
    events.PartitionSizeMeasured: Metrics._measured,  # type: ignore[dict-item]
    events.TimerSuspended: lambda m, e: m.count("tocsin_timers_suspended", e.reason.partition(":")[0]),  # type: ignore[union-attr]
    events.TimersResumed: lambda m, e: m.count("tocsin_timers_resumed", by=e.timers),  # type: ignore[union-attr]
    events.WriteRefused: lambda m, e: m.count("tocsin_writes_refused"),
    events.HeartbeatFailed: lambda m, e: m.count("tocsin_heartbeat_failures"),
    events.HistoryPurged: lambda m, e: m.count("tocsin_history_purged", by=e.timers),  # type: ignore[union-attr]
    events.PeerLost: lambda m, e: m.count("tocsin_peer_losses"),
    events.PeerRefused: lambda m, e: m.count("tocsin_peers_refused", e.kind),  # type: ignore[union-attr]
    events.PeerCertificateLoaded: Metrics._certificate,  # type: ignore[dict-item]
    events.PeerCertificateNotLoaded: lambda m, e: m.count("tocsin_peer_certificate_reads", "failed"),
    events.ClientRefused: lambda m, e: m.count("tocsin_clients_refused", e.reason),  # type: ignore[union-attr]
    events.WritesSent: lambda m, e: m.count("tocsin_forward_messages"),
    events.WritesForwarded: lambda m, e: m.count("tocsin_writes_forwarded", e.outcome, by=e.writes),  # type: ignore[union-attr]
    events.ClockOffset: Metrics._offset,  # type: ignore[dict-item]
}
