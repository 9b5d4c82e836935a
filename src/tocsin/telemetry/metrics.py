"""The metrics of a node, with those that no event declares: observers of events and of requests, gauges, sizes of files."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tocsin import __version__
from tocsin.build_info import commit
from tocsin.ports.event import DURATION_SECONDS, NAMESPACES_MAX, Counter, Histogram, declared
from tocsin.ports.observer import Event, PartitionSizeMeasured, ShardLost, ShardReleased, ShardSizeEstimated
from tocsin.service_calls.events import AgentEvent
from tocsin.telemetry.tally import Buckets, ScrapedCollector, Tally

#: Counters of no event.
COUNTERS = (
    Counter(
        "tocsin_authentication_failures",
        "Requests and sign-ins with an invalid key, by reason: unknown_key, expired_key, malformed; foreign_source: a valid "
        "key that is limited to other sources; unknown_token: a ping to no monitor's URL.",
        ("reason",),
        from_zero=("unknown_token",),
    ),
    Counter(
        "tocsin_audit_export_dropped",
        "Records of the audit export that a destination (file, stdout, otlp) did not take in time, or refused.",
        ("sink",),
        from_zero=("file", "stdout", "otlp"),
    ),
    Counter("tocsin_audit_write_failures", "Audit entries that could not be stored immediately; they are retried."),
)
REQUESTS = Counter(
    "tocsin_requests",
    "Responses of the API, by operation, as the OpenAPI document names it (`other`: no operation), and HTTP status.",
    ("operation", "status"),
)
REQUEST_DURATION = Histogram(
    "tocsin_request_duration_seconds",
    "From a request to the API to its response, by the label `operation`. A write's includes the commit.",
    DURATION_SECONDS,
    "seconds",
)
#: Gauges whose values are read at the scrape: name, help. Those that events set are declared with them.
GAUGES: dict[str, str] = {
    "tocsin_callbacks_in_flight": "Callbacks in flight, without messages to NATS subjects.",
    "tocsin_messages_in_flight": "Messages of timers to NATS subjects that are not acknowledged yet.",
    "tocsin_callback_connections": "Connections to timers' receivers, open or being opened, including idle ones.",
    "tocsin_agent_connections": "Connections to services for the agent's calls, open or being opened, including idle ones.",
    "tocsin_nats_connected": "1 while timers can be published to NATS; 0 also without `nats_url` and before the first one.",
    "tocsin_sink_backlog": "Events that wait for sinks of their namespaces, in the shards of this node.",
    "tocsin_sink_behind_seconds": "For how long a sink has not taken the next event of a shard of this node, the longest of "
    "all; 0 if each takes what there is.",
    "tocsin_names_resolving": "Host names being resolved, for timers and service calls.",
    "tocsin_credentials_without_token": "Credentials that need a token and have none: what names them waits.",
    "tocsin_timers_deferred": "Due timers that wait in memory because their destination, or their namespace's share of the "
    "node, is full. Those that wait for a flow are not among them.",
    "tocsin_destinations": "Destinations in use, or within the last five minutes.",
    "tocsin_breakers_open": "Destinations whose breaker is not closed on this node: their timers wait for probes to succeed.",
    "tocsin_overdue_seconds": "How long the oldest due timer has waited for its attempt; 0 if none waits.",
    "tocsin_window_timers": "Timers in the windows, in memory.",
    "tocsin_window_bytes": "Bytes of stored records in the windows, in memory.",
    "tocsin_results_waiting": "Results of callbacks that no commit has written yet. A node that is killed repeats these "
    "callbacks.",
    "tocsin_jobs_running": "Jobs that this node works on.",
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
    "tocsin_api_keys_expiring": "API keys that expire within `keys_expiry_notice`, at the earliest in the last quarter of "
    "their time, or have expired and still exist.",
    "tocsin_inbox_draining": "1 on the node that drains the inbox, 0 on others and without one.",
    "tocsin_inbox_away_seconds": "How long the inbox's database has not answered the node that drains it; 0 while it does.",
    "tocsin_inbox_rows_waiting": "Rows of the inbox that wait for their timers, counted every minute among the oldest "
    "100,000 rows.",
    "tocsin_inbox_rows_dead": "Dead rows of the inbox, which are refused for good, counted alike and as they are found.",
    "tocsin_inbox_oldest_seconds": "Age of the inbox's oldest row that waited for its timer at the latest count; 0 if none "
    "did.",
    "tocsin_shard_size_bytes_max": "Size of the largest shard: in DynamoDB estimated, of those that "
    "this node writes, with a limit of 10 GiB; in Cassandra of all, as its nodes report it.",
}
#: Gauges of the rules of flows for which most waits: name, help.
FLOW_GAUGES: dict[str, str] = {
    "tocsin_flow_timers_waiting": "Due timers that wait in memory within the limits of a flow, and service calls, by "
    "namespace and by what its rule matches (empty: the namespace's own limits); of the 20 rules that have the most. More "
    "timers may wait in the store.",
    "tocsin_flow_callbacks_in_flight": "Callbacks and requests of service calls of this node in flight, of the same rules.",
}
#: Rules of flows that have series.
FLOWS_MAX = 20
#: Gauges of the destinations whose breakers have been open for longest: name, help.
BREAKER_GAUGES: dict[str, str] = {
    "tocsin_breaker_open_seconds": "How long the breaker of a destination has not been closed on this node, by destination; "
    "of the 20 that have been open for longest. Absent for destinations that are paused.",
}
#: Destinations that have series.
BREAKERS_MAX = 20
#: The same of the service agent.
AGENT_GAUGES: dict[str, str] = {
    "tocsin_agent_running": "1 on the node that runs the agent, 0 on standby nodes.",
    "tocsin_agent_executions_in_flight": "Requests to services in flight.",
    "tocsin_agent_executions_deferred": "Calls that wait for a free slot within the limits on requests.",
    "tocsin_agent_executions_suspended": "Calls that wait in the agent's database: for flow, credential or destination.",
    "tocsin_agent_messages_waiting": "Messages on the bus that this process has yet to handle.",
    "tocsin_agent_outbox_waiting": "Outbox rows read and not yet accepted by the bus.",
    "tocsin_agent_broker_connected": "1 while the broker is reachable.",
}
#: Gauges of databases in files: name, help.
DISK_GAUGES: dict[str, str] = {
    "tocsin_store_bytes": "Size of SQLite's files, by file: database, wal (its write-ahead log), agent_database, agent_wal. "
    "Space of deleted rows is used again, but a database file does not shrink. Absent with a database server.",
    "tocsin_store_free_bytes": "Free space of the disk that has the SQLite files. Absent with a database server.",
}
#: Stands for the largest shard, where the database does not report which one that is.
_LARGEST = -1

#: Metrics whose value is always 1, and whose labels have the information: name, help.
INFOS: dict[str, str] = {"tocsin_build_info": "Always 1. Its labels are the version, the commit and Python's version."}


class Metrics(Tally):
    """Counts events for Prometheus. Each scrape calls `gauges` for the values of GAUGES. The first `namespaces_max`
    namespaces have series of their own."""

    def __init__(self, gauges: Callable[[], dict[str, float]], namespaces_max: int = NAMESPACES_MAX) -> None:
        self._shard_bytes: dict[int, int] = {}
        super().__init__(
            declared(Event),
            GAUGES,
            lambda: gauges() | {"tocsin_shard_size_bytes_max": self.largest_shard_bytes() or 0},
            COUNTERS,
            namespaces_max,
        )
        self.also(ShardSizeEstimated, self._size)
        self.also(PartitionSizeMeasured, self._measured)
        self.also(ShardLost, self._left)
        self.also(ShardReleased, self._left)
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

    def exposition(self) -> tuple[bytes, str]:
        """The body and content type of a scrape."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _size(self, event: ShardSizeEstimated) -> None:
        self._shard_bytes[event.shard_id] = event.size_bytes

    def _measured(self, event: PartitionSizeMeasured) -> None:
        self._shard_bytes[_LARGEST] = event.size_bytes

    def _left(self, event: ShardLost | ShardReleased) -> None:
        self._shard_bytes.pop(event.shard_id, None)


class AgentMetrics(Tally):
    """Counts the service agent's events. Each scrape calls `gauges` for the values of AGENT_GAUGES."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]]) -> None:
        super().__init__(declared(AgentEvent), AGENT_GAUGES, gauges)


#: Operations that create timers or schedules.
CREATES = ("createTimer", "batchCreateTimers", "createSchedule")
_SERVER_ERRORS = 500


class RequestMetrics(ScrapedCollector):
    """Plain numbers, like `Tally`, but for a histogram with a label: a create adds to both in one call."""

    def __init__(self) -> None:
        self._operations: dict[str, tuple[dict[int, int], Buckets]] = {}
        self._items_refused = 0

    def __call__(self, operation: str, status: int, seconds: float) -> None:
        """Counts a response."""
        counted = self._operations.get(operation)
        if counted is None:
            counted = self._operations[operation] = ({}, Buckets(DURATION_SECONDS))
        statuses, durations = counted
        statuses[status] = statuses.get(status, 0) + 1
        durations.add(seconds)

    def item_refused(self, status: int) -> None:
        """Counts a timer of a batch that was answered with this status of an error, while the others may exist."""
        self._items_refused += status >= _SERVER_ERRORS

    def creates_refused(self) -> int:
        """How many requests to create timers or schedules, and timers of answered batches, got an error of the server."""
        counted = (self._operations[name][0] for name in CREATES if name in self._operations)
        return self._items_refused + sum(
            number for statuses in counted for status, number in statuses.items() if status >= _SERVER_ERRORS
        )

    def collect(self) -> Iterator[Metric]:
        """Both metrics, for the registry."""
        counter = CounterMetricFamily(REQUESTS.name, REQUESTS.help, labels=REQUESTS.labels)
        histogram = HistogramMetricFamily(REQUEST_DURATION.name, REQUEST_DURATION.help, labels=REQUESTS.labels[:1])
        for operation, (statuses, durations) in list(self._operations.items()):
            for status, count in list(statuses.items()):
                counter.add_metric([operation, str(status)], count)
            histogram.add_metric([operation], durations.cumulative(), durations.total)
        yield counter
        yield histogram


class FlowMetrics(ScrapedCollector):
    """The rules of flows for which most waits; `busiest` returns so many (namespace, match, in flight, waiting)
    at each scrape."""

    def __init__(self, busiest: Callable[[int], Iterable[tuple[str, str, int, int]]]) -> None:
        self._busiest = busiest

    def collect(self) -> Iterator[Metric]:
        """Both metric families, for the registry."""
        waiting, in_flight = (
            GaugeMetricFamily(name, text, labels=["namespace", "flow"]) for name, text in FLOW_GAUGES.items()
        )
        for namespace, match, flying, deferred in self._busiest(FLOWS_MAX):
            waiting.add_metric([namespace, match], deferred)
            in_flight.add_metric([namespace, match], flying)
        yield waiting
        yield in_flight


class BreakerMetrics(ScrapedCollector):
    """The destinations whose breakers have been open for longest; `longest_open` returns so many (name, microseconds) at each
    scrape."""

    def __init__(self, longest_open: Callable[[int], Iterable[tuple[str, int]]]) -> None:
        self._longest_open = longest_open

    def collect(self) -> Iterator[Metric]:
        """The metric family, for the registry."""
        for name, text in BREAKER_GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=["destination"])
            for destination, open_us in self._longest_open(BREAKERS_MAX):
                family.add_metric([destination], open_us / 1e6)
            yield family


class DiskMetrics(Collector):
    """Measures these databases, by the name in their label, with their logs at each scrape: a few calls about local files
    that are open anyway. A file that is missing has no series."""

    def __init__(self, databases: Mapping[str, Path]) -> None:
        logs = {
            f"{name.removesuffix('database')}wal": path.with_name(f"{path.name}-wal")
            for name, path in databases.items()
        }
        self._files = {**databases, **logs}

    def collect(self) -> Iterator[Metric]:
        """The metric families, for the registry."""
        sizes = GaugeMetricFamily("tocsin_store_bytes", DISK_GAUGES["tocsin_store_bytes"], labels=["file"])
        free: list[int] = []
        for name, path in self._files.items():
            try:
                sizes.add_metric([name], path.stat().st_size)
                free.append(shutil.disk_usage(path).free)
            except FileNotFoundError:
                continue
        yield sizes
        space = GaugeMetricFamily("tocsin_store_free_bytes", DISK_GAUGES["tocsin_store_free_bytes"])
        if free:
            # On two disks, the one that fills first.
            space.add_metric([], min(free))
        yield space
