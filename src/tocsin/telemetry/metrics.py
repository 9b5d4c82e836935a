"""The timer service's metrics: an observer of the engine's events."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from tocsin.ports import observer as events
from tocsin.ports.observer import Event
from tocsin.telemetry.tally import DURATION_SECONDS, LAG_SECONDS, Tally

_ROWS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)

#: Every counter: name, labels, help. `docs/reference/metrics.md` is made from these tables.
COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "tocsin_timers_created": (("namespace",), "Timers durably created or replaced."),
    "tocsin_timers_changed": (("namespace", "kind"), "Timers durably updated or deleted."),
    "tocsin_attempts": (
        ("namespace", "outcome"),
        "Webhook calls by outcome: done, rescheduled, retried, failed, superseded.",
    ),
    "tocsin_attempts_not_sent": (
        ("code",),
        "Webhook requests that could not be sent for a reason of this machine's own; they don't count and are made again.",
    ),
    "tocsin_commits": (("result",), "Transactions: durable, definite (failed), unavailable, unknown, read."),
    "tocsin_rows_loaded": ((), "Timers loaded into the windows."),
    "tocsin_load_failures": ((), "Reads that failed and were tried again."),
    "tocsin_claims": ((), "Shards claimed."),
    "tocsin_claim_failures": ((), "Claims lost to another node, or failed."),
    "tocsin_shards_lost": (("reason",), "Claims that ended, by reason."),
    "tocsin_timers_suspended": (("reason",), "Timers set aside: namespace, destination or bad_record."),
    "tocsin_timers_resumed": ((), "Suspended timers that came back."),
    "tocsin_writes_refused": ((), "Single timers that the store refused and that were taken out of their batch."),
    "tocsin_heartbeat_failures": ((), "Heartbeats that did not reach the store."),
    "tocsin_history_purged": ((), "Finished timers removed by retention."),
    "tocsin_writes_forwarded": (
        ("outcome",),
        "Clients' writes sent to other nodes, by what became of them there: answered, moved, unknown.",
    ),
    "tocsin_forward_messages": ((), "Messages that brought clients' writes to other nodes; many writes share one."),
    "tocsin_peer_losses": ((), "Connections to other nodes that ended or could not be made."),
    "tocsin_authentication_failures": (
        ("reason",),
        "Requests and sign-ins refused because of their key: unknown_key, expired_key, malformed.",
    ),
    "tocsin_audit_write_failures": ((), "Entries of the audit trail that the store did not take at once."),
    "tocsin_clients_refused": (
        ("reason",),
        "Clients turned away before they had a request, by reason: not HTTP, too many connections, bodies take too much "
        "memory; and seconds in which no file descriptor is left.",
    ),
    "tocsin_peers_refused": ((), "Connections of programs that don't know the cluster's secret."),
}
#: Every histogram: name, bucket bounds, help.
HISTOGRAMS: dict[str, tuple[tuple[float, ...], str]] = {
    "tocsin_lag_seconds": (
        LAG_SECONDS,
        "From an attempt's instant, or its acceptance if later, to the first byte of its request.",
    ),
    "tocsin_callback_duration_seconds": (DURATION_SECONDS, "From the start of an attempt to the end of its answer."),
    "tocsin_commit_duration_seconds": (DURATION_SECONDS, "Time of one transaction in the store."),
    "tocsin_commit_rows": (_ROWS, "Upserts, deletes and history rows in one transaction."),
    "tocsin_load_duration_seconds": (DURATION_SECONDS, "Time to load one page of timers."),
}
#: Every gauge: name, help. Their values are read at the scrape.
GAUGES: dict[str, str] = {
    "tocsin_callbacks_in_flight": "Webhook calls under way.",
    "tocsin_callback_connections": "Connections to timers' receivers, open or being opened, idle ones included.",
    "tocsin_agent_connections": "The same for the agent's calls to services.",
    "tocsin_names_resolving": "Host names that are being resolved, for both.",
    "tocsin_timers_waiting": "Due timers that wait in memory for their destination's, or their namespace's, limit.",
    "tocsin_destinations": "Destinations in use, or remembered because they did not answer.",
    "tocsin_overdue_seconds": "How long the oldest due timer has been waiting to be called; 0 when none waits.",
    "tocsin_window_timers": "Timers in memory.",
    "tocsin_window_bytes": "Bytes of stored records in memory.",
    "tocsin_writes_waiting": "Client writes that wait for their batch.",
    "tocsin_client_connections": "Open connections of clients.",
    "tocsin_request_bodies_bytes": "Bytes of request bodies that have begun to arrive and are not complete.",
    "tocsin_shards_owned": "Shards this node owns.",
    "tocsin_dispatching": "1 while due timers are rung, 0 while dispatch is paused.",
    "tocsin_writes_without_owner": "Client writes that wait for their shard to get an owner.",
    "tocsin_api_keys_expiring": "API keys that expire within `keys_expiry_notice`, or have expired and still exist.",
    "tocsin_clock_offset_seconds": "This node's clock minus the store's, at the last heartbeat.",
}


class Metrics(Tally):
    """Observes events and shows them. `gauges` is asked at each scrape for the values named in GAUGES; `beside` is a
    collector shown in the same scrape."""

    def __init__(self, gauges: Callable[[], dict[str, float]], beside: Collector | None = None) -> None:
        self._clock_offset_s = 0.0
        super().__init__(
            COUNTERS, HISTOGRAMS, GAUGES, lambda: {**gauges(), "tocsin_clock_offset_seconds": self._clock_offset_s}
        )
        self.registry = CollectorRegistry()
        self.registry.register(self)
        if beside is not None:
            self.registry.register(beside)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def exposition(self) -> tuple[bytes, str]:
        """The body and content type of a scrape."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def __call__(self, event: Event) -> None:
        """Observes."""
        if isinstance(event, events.AttemptFinished):
            self.count("tocsin_attempts", event.namespace, event.outcome)
            if event.lag_us is not None:
                self.observe("tocsin_lag_seconds", event.lag_us / 1e6)
            self.observe("tocsin_callback_duration_seconds", event.duration_us / 1e6)
            return
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def _committed(self, event: events.BatchCommitted) -> None:
        self.count("tocsin_commits", "durable")
        self.observe("tocsin_commit_duration_seconds", event.duration_us / 1e6)
        self.observe("tocsin_commit_rows", event.upserts + event.deletes + event.history)

    def _loaded(self, event: events.PageLoaded) -> None:
        self.count("tocsin_rows_loaded", by=event.rows)
        self.observe("tocsin_load_duration_seconds", event.duration_us / 1e6)

    def _offset(self, event: events.ClockOffset) -> None:
        self._clock_offset_s = event.offset_us / 1e6


_HANDLERS: dict[type, Callable[[Metrics, Event], None]] = {
    events.TimersCreated: lambda m, e: m.count("tocsin_timers_created", e.namespace, by=e.timers),  # type: ignore[union-attr]
    events.TimersChanged: lambda m, e: m.count("tocsin_timers_changed", e.namespace, e.kind, by=e.timers),  # type: ignore[union-attr]
    events.AttemptNotSent: lambda m, e: m.count("tocsin_attempts_not_sent", e.code),  # type: ignore[union-attr]
    events.BatchCommitted: Metrics._committed,  # type: ignore[dict-item]
    events.BatchFailed: lambda m, e: m.count("tocsin_commits", e.kind),  # type: ignore[union-attr]
    events.PageLoaded: Metrics._loaded,  # type: ignore[dict-item]
    events.LoadFailed: lambda m, e: m.count("tocsin_load_failures"),
    events.ShardClaimed: lambda m, e: m.count("tocsin_claims"),
    events.ClaimFailed: lambda m, e: m.count("tocsin_claim_failures"),
    events.ShardLost: lambda m, e: m.count("tocsin_shards_lost", e.reason),  # type: ignore[union-attr]
    events.TimerSuspended: lambda m, e: m.count("tocsin_timers_suspended", e.reason.partition(":")[0]),  # type: ignore[union-attr]
    events.TimersResumed: lambda m, e: m.count("tocsin_timers_resumed", by=e.timers),  # type: ignore[union-attr]
    events.WriteRefused: lambda m, e: m.count("tocsin_writes_refused"),
    events.HeartbeatFailed: lambda m, e: m.count("tocsin_heartbeat_failures"),
    events.HistoryPurged: lambda m, e: m.count("tocsin_history_purged", by=e.timers),  # type: ignore[union-attr]
    events.PeerLost: lambda m, e: m.count("tocsin_peer_losses"),
    events.PeerRefused: lambda m, e: m.count("tocsin_peers_refused"),
    events.ClientRefused: lambda m, e: m.count("tocsin_clients_refused", e.reason),  # type: ignore[union-attr]
    events.WritesSent: lambda m, e: m.count("tocsin_forward_messages"),
    events.WritesForwarded: lambda m, e: m.count("tocsin_writes_forwarded", e.outcome, by=e.writes),  # type: ignore[union-attr]
    events.ClockOffset: Metrics._offset,  # type: ignore[dict-item]
}
