"""Address, storage and processes; logging and shutdown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin.cluster.limits import ClusterLimits
from tocsin.model.errors import ConfigError
from tocsin.settings.groups.base import Group
from tocsin.settings.values import (
    Count,
    Duration,
    DurationOrZero,
    LogFormat,
    LogLevel,
    Port,
    api_url,
    count,
    one_of,
    redacted,
    share,
    store_address,
)
from tocsin.stores import TOTAL_SHARDS_DEFAULT, TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.telemetry.limits import NAMESPACES_MAX
from tocsin.timers.engine.limits import EngineLimits

#: More shards than this have no use, and each commit and each heartbeat covers all of them.
SHARDS_MAX = 65_536


class Server(Group):
    """The address, the store and the processes."""

    title: ClassVar[str] = "Server and storage"
    intro: ClassVar[str] = "Where the server listens, where it keeps timers, and how many processes and shards it has."

    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on. An address that other machines can reach requires API keys, or `insecure`. "
        "On a loopback address requests need a key once a key exists or `ui.origins` names an address that is not "
        "loopback.",
    )
    port: Port = Field(8080, description="Port to listen on; 0 picks a free port.")
    data_dir: Path = Field(
        Path("data"),
        description="Directory for the SQLite databases (timers and service calls) and their lock files. Created if "
        "it is missing.",
    )
    store: Annotated[str, BeforeValidator(store_address)] | None = Field(
        None,
        description="Where timers are stored: `sqlite:///relative/path`, `sqlite:////absolute/path`, "
        "`postgresql://user:password@host:port/database`, `mysql://user:password@host:port/database` (MariaDB too), "
        "`dynamodb://table?region=…&endpoint=…` (both parameters optional), "
        "`cassandra://user:password@host1:port,host2/keyspace?datacenter=…&consistency=…`, "
        "`mongodb://user:password@host,host/database?replicaSet=…` or `mongodb+srv://…`, "
        "or `memory://`, which loses them on exit. Unset: the SQLite file `tocsin.db` in `data_dir`.",
    )
    store_file: Path | None = Field(
        None,
        description="File with the value of `store`, for a URL with a password. The newline at its end is ignored.",
    )
    shards: Annotated[int, BeforeValidator(partial(count, most=SHARDS_MAX))] | None = Field(
        None,
        description="Number of partitions of all timers, fixed when the store is created. Unset: the store's number; "
        f"for a new store {TOTAL_SHARDS_DEFAULT}, on a database server {TOTAL_SHARDS_SHARED_DEFAULT}. More shards "
        "spread the work over more nodes, and make each commit a little more expensive.",
    )
    namespace_num_shards: Count = Field(
        16,
        description="Number of shards that a namespace created without `numShards` uses. A "
        "namespace can't have more shards than its store (`shards`), so in a new SQLite store, which has "
        f"{TOTAL_SHARDS_DEFAULT}, it gets {TOTAL_SHARDS_DEFAULT}. Higher values spread its timers over more nodes.",
    )
    workers: Count = Field(
        1,
        description="Processes that serve the port together, each a node of its own; more than 1 requires a database "
        "server as `store`. Higher values use more cores.",
    )

    def store_url(self) -> str:
        """The store's URL, `sqlite:///<data_dir>/tocsin.db` unless another was chosen."""
        return self.store or f"sqlite:///{self.data_dir / 'tocsin.db'}"

    def store_url_redacted(self) -> str:
        """The store's URL for people and logs: without a password."""
        return redacted(self.store_url())

    def sqlite_path(self) -> Path:
        """The file of a `sqlite:///` store. Raises ConfigError for another kind of store."""
        url = self.store_url()
        if not url.startswith("sqlite:///"):
            raise ConfigError(f"store: {redacted(url)} is not a file; write it as sqlite:///path")
        return Path(url.removeprefix("sqlite:///"))


class LoggingAndShutdown(Group):
    """What is logged and counted, and how a node stops."""

    title: ClassVar[str] = "Logging and shutdown"
    intro: ClassVar[str] = "What the server logs and counts, and how long it takes to stop."

    log_level: Annotated[LogLevel, BeforeValidator(partial(one_of, ("debug", "info", "warning", "error")))] = Field(
        "info", description="Lowest severity that is logged: `debug`, `info`, `warning` or `error`."
    )
    log_format: Annotated[LogFormat, BeforeValidator(partial(one_of, ("auto", "console", "json")))] = Field(
        "auto",
        description="Format of log lines: `console`, `json`, or `auto`, which is console on a terminal and JSON "
        "elsewhere.",
    )
    metrics_namespaces_max: Count = Field(
        NAMESPACES_MAX,
        description="Namespaces with series of their own in a node's metrics, the first that it sees; all others share the "
        "label `tocsin.other`. Higher values distinguish more namespaces; each adds a few series to every scrape.",
    )
    drain_timeout: Duration = Field(
        EngineLimits().drain_timeout_us,
        description="How long a stopping node waits for in-flight callbacks; must be longer than "
        "`callback_timeout_max`. With lower values it stops sooner, and callbacks that were cut off are invoked "
        "again.",
    )
    cluster_leave_delay: DurationOrZero = Field(
        ClusterLimits().leave_delay_us,
        description="How long a stopping node keeps serving requests while `/readyz` reports it as not ready, and "
        "then again as long without accepting connections. Set it to the time that the load balancer takes to notice.",
    )


class Tracing(Group):
    """Traces for OpenTelemetry."""

    title: ClassVar[str] = "Tracing"
    intro: ClassVar[str] = "Where spans of creates, callbacks and service calls go. [How to trace](../how-to/trace.md)."

    tracing_endpoint: Annotated[str, BeforeValidator(api_url)] | None = Field(
        None,
        description="URL of a collector for OTLP over HTTP, such as `http://127.0.0.1:4318`; spans go to its `/v1/traces`. "
        "Requires the extra `tocsin[otel]`. Unset: no spans.",
    )
    tracing_sample_ratio: Annotated[float, BeforeValidator(share)] = Field(
        0.01,
        description="Share of requests without a `traceparent` of their own that are traced, from 0 to 1, with all callbacks "
        "of the timers that they create and all executions of the service calls that they submit. Higher values show more "
        "and cost more processor time.",
    )
