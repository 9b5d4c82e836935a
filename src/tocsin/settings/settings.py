"""All settings: what the server itself takes, and the dataclasses that its parts take.

A setting is a field that a dataclass declares with `tocsin.model.setting.setting`. Its name in the environment, in the file
and in messages follows from where it is declared (`tocsin.settings.declared`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.tls import TlsOptions
from tocsin.http_client.egress import EgressOptions
from tocsin.http_client.limits import CallbackLimits
from tocsin.inbox.options import InboxOptions
from tocsin.messaging.limits import BusLimits
from tocsin.model.errors import ConfigError
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.namespace import RETENTION_DEFAULT_US
from tocsin.model.setting import Topic, setting
from tocsin.model.setting_values import (
    api_url,
    broker_address,
    count,
    database_address,
    former_secret,
    name_of_node,
    networks,
    origins,
    peer_address,
    port_number,
    redacted,
    secret,
    store_address,
    subject_prefix,
    subject_targets,
)
from tocsin.model.validation import InputLimits
from tocsin.ports.event import NAMESPACES_MAX
from tocsin.sealing import SecretsOptions
from tocsin.service_calls.limits import AgentLimits
from tocsin.sql.pool import ServerOptions
from tocsin.sso.options import OidcOptions
from tocsin.stores import TOTAL_SHARDS_DEFAULT
from tocsin.stores.options import (
    CassandraOptions,
    DynamoOptions,
    MongoOptions,
    MysqlOptions,
    PostgresOptions,
    SqliteOptions,
)
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.telemetry.audit_export import AuditExportOptions
from tocsin.telemetry.logs import LogOptions
from tocsin.telemetry.tracing import TracingOptions
from tocsin.timers.engine.limits import BreakerOptions, EngineLimits
from tocsin.web.api.mcp.options import McpOptions
from tocsin.web.api.request import ApiLimits
from tocsin.web.pages.limits import UiLimits

T = TypeVar("T")

#: More shards than this have no use, and each commit and each heartbeat covers all of them.
SHARDS_MAX = 65_536

AgentTimer = Literal["polling", "engine"]


class Part(NamedTuple):
    """A dataclass within Settings: the topic of its settings, unless one has another; the file's table with them, "" for
    settings outside any table; and how their names begin there."""

    topic: Topic
    table: str
    prefix: str


def _part(kind: type[T], topic: Topic, table: str, prefix: str = "") -> T:
    return field(default=kind(), metadata={"part": Part(topic, table, prefix)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, validated and immutable. `load_settings` makes it."""

    host: str = setting(
        "127.0.0.1",
        "Address to listen on. An address that other machines can reach requires API keys, or `insecure`. On a "
        "loopback address requests need a key once a key exists or `ui.origins` names an address that is not "
        "loopback.",
    )
    port: int = setting(
        8080,
        "Port to listen on; 0 picks a free port.",
        rule=port_number,
    )
    public_url: str | None = setting(
        None,
        "URL at which receivers reach this service, such as `https://timers.example.com`; the same on all nodes. It is the "
        "issuer of the JWTs that credentials of type `jwt` send, and receivers find their keys at its path "
        "`/.well-known/jwks.json`. Ping URLs of monitors begin with it, too. Unset: there are no such credentials, and ping "
        "URLs have the host at which they were asked for, with `https` if `ui.origins` has it so or the proxy sends "
        "`X-Forwarded-Proto: https`.",
        rule=api_url,
    )
    data_dir: Path = setting(
        Path("data"),
        "Directory for the SQLite databases (timers and service calls) and their lock files. Created if it is missing.",
    )
    store: str | None = setting(
        None,
        "Where timers are stored: `sqlite:///relative/path`, `sqlite:////absolute/path`, "
        "`postgresql://user:password@host:port/database`, `mysql://user:password@host:port/database` (MariaDB too), "
        "`dynamodb://table?region=…&endpoint=…` (both parameters optional), "
        "`cassandra://user:password@host1:port,host2/keyspace?datacenter=…&consistency=…`, "
        "`mongodb://user:password@host,host/database?replicaSet=…` or `mongodb+srv://…`, or `memory://`, which loses "
        "them on exit. Unset: the SQLite file `tocsin.db` in `data_dir`.",
        rule=store_address,
    )
    store_file: Path | None = setting(
        None,
        "File with the value of `store`, for a URL with a password. The newline at its end is ignored.",
    )
    shards: int | None = setting(
        None,
        "Number of partitions of all timers, fixed when the store is created. Unset: the store's number; for a new "
        "store 4, on a database server 16. More shards spread the work over more nodes, and make each commit a little "
        "more expensive.",
        rule=partial(count, most=SHARDS_MAX),
    )
    namespace_num_shards: int = setting(
        16,
        "Number of shards that a namespace created without `numShards` uses. A namespace can't have more shards than its "
        f"store (`shards`), so in a new SQLite store, which has {TOTAL_SHARDS_DEFAULT}, it gets {TOTAL_SHARDS_DEFAULT}. "
        "Higher values spread its timers over more nodes.",
    )
    workers: int = setting(
        1,
        "Processes that serve the port together, each a node of its own; more than 1 requires a database server as "
        "`store`. Higher values use more cores.",
    )
    insecure: bool = setting(
        False,
        "Serve every request without an API key, even if other machines can reach the server or keys exist.",
        topic=Topic.SECURITY,
    )
    admin_key_file: Path | None = setting(
        None,
        "File with the first admin key: 32 to 256 visible characters, such as from `openssl rand -hex 32`. If the "
        "store has no API key when the server starts, it creates this one. Later the file is ignored.",
        topic=Topic.SECURITY,
    )
    metrics_open: bool | None = setting(
        None,
        "Serve `/metrics` without an API key. Unset: only if no other request needs a key.",
        topic=Topic.SECURITY,
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses and networks of proxies whose `X-Forwarded-For` header names the client in the log, in the audit "
        "trail and for the rate limit on wrong keys, and whose `X-Forwarded-Proto: https` makes cookies secure. Unset: the "
        "address of the connection counts.",
        topic=Topic.SECURITY,
        rule=networks,
    )
    keys_refresh_s: float = setting(
        2.0,
        "How often a node reads API keys and sessions again, and so how long a revoked one still works. Lower values "
        "end access sooner and query the store more often.",
        topic=Topic.SECURITY,
    )
    keys_expiry_notice_s: float = setting(
        14 * 86_400.0,
        "How long before an API key expires the log (once a day) and the metric `tocsin_api_keys_expiring` announce "
        "it; at the earliest in the last quarter of the time for which it was created. Higher values leave more time to "
        "replace the key.",
        topic=Topic.SECURITY,
    )
    ui_origins: tuple[str, ...] = setting(
        (),
        "Origins at which browsers reach the web pages besides the listening address, such as "
        "`https://tocsin.example` behind a proxy that terminates TLS. The pages answer under no other name.",
        topic=Topic.SECURITY,
        rule=origins,
    )
    secrets: SecretsOptions = _part(SecretsOptions, Topic.SECURITY, "secrets")
    egress: EgressOptions = _part(EgressOptions, Topic.EGRESS, "egress")
    log: LogOptions = _part(LogOptions, Topic.LOGGING, "", "log_")
    metrics_namespaces_max: int = setting(
        NAMESPACES_MAX,
        "Namespaces with series of their own in a node's metrics, the first that it sees; all others share the label "
        "`tocsin.other`. Higher values distinguish more namespaces; each adds a few series to every scrape.",
        topic=Topic.LOGGING,
    )
    tracing: TracingOptions = _part(TracingOptions, Topic.TRACING, "tracing")
    audit_export: AuditExportOptions = _part(AuditExportOptions, Topic.SECURITY, "audit_export")
    history_retention_us: int = setting(
        RETENTION_DEFAULT_US,
        "How long finished timers stay visible in namespaces created without a `retention` of their own.",
        topic=Topic.RETENTION,
    )
    audit_retention_s: float = setting(
        90 * 86_400.0,
        "How long entries of the audit trail are kept.",
        topic=Topic.RETENTION,
    )
    api_connections_max: int | None = setting(
        None,
        "Connections of clients that a process accepts. At the limit it closes the connection whose client has kept "
        "the server waiting longest; if all are being served, the new one. Unset: what the limit on open files leaves "
        "beside callbacks, stores and other nodes (at least half of it), at most 10,000. Higher values serve more "
        "clients at once, for more memory.",
        topic=Topic.REQUESTS,
    )
    keep_alive_timeout_us: int = setting(
        75 * US_PER_SECOND,
        "How long a client's idle connection is kept open; responses announce it, rounded up to seconds. Keep it "
        "longer than the keep-alive timeout of a proxy in front, so that the proxy is the side that closes.",
        topic=Topic.REQUESTS,
    )
    node_name: str | None = setting(
        None,
        "This node's name in `GET /cluster`; it decides which shards the node gets, so no two nodes may have the "
        "same. Unset: the host's name and the port.",
        topic=Topic.CLUSTER,
        rule=name_of_node,
    )
    advertise: str | None = setting(
        None,
        "Address, or address and port, at which other nodes reach this one. Unset: `host`; if that stands for every "
        "address, the one from which this node reaches the database, or the host's name if the database is on this "
        "machine.",
        topic=Topic.CLUSTER,
        rule=peer_address,
    )
    advertise_api: str | None = setting(
        None,
        "URL of this node's own API, such as `http://10.0.0.5:8080`, for clients that send each write to the node "
        "that owns its timer. Unset: such clients use the address they were given, and any node forwards their "
        "writes. Workers of one server share a URL, so theirs is not shown.",
        topic=Topic.CLUSTER,
        rule=api_url,
    )
    cluster_port: int = setting(
        0,
        "Port for connections of other nodes; 0 picks a free port. Worker n of several listens on the n-th port after "
        "it.",
        topic=Topic.CLUSTER,
        rule=port_number,
    )
    cluster_secret: str | None = setting(
        None,
        "Shared secret by which nodes authenticate one another: at least 16 characters, the same on every node. A "
        "node with another secret gets no shards and is not ready. Unset: a random one that the store keeps for all "
        "nodes.",
        topic=Topic.CLUSTER,
        rule=secret,
    )
    cluster_secret_file: Path | None = setting(
        None,
        "File with the value of `cluster.secret`. The server reads it at its start.",
        topic=Topic.CLUSTER,
    )
    cluster_secret_former: str | None = setting(
        None,
        "While `cluster.secret` is replaced, the value that it had before, or `stored` if it was unset. This node "
        "accepts nodes that still have it. Set it only until every node has the new secret.",
        topic=Topic.CLUSTER,
        rule=former_secret,
    )
    cluster_secret_former_file: Path | None = setting(
        None,
        "File with the value of `cluster.secret_former`. The server reads it at its start.",
        topic=Topic.CLUSTER,
    )
    cluster_tls: TlsOptions = _part(TlsOptions, Topic.CLUSTER, "cluster", "tls_")
    agent_enabled: bool | None = setting(
        None,
        "Run the service agent beside the timer service. Unset: yes, except with a MySQL, DynamoDB, MongoDB or "
        "Cassandra `store` and no `agent.database`, because a file of each node's own would hide calls from the other "
        "nodes.",
        topic=Topic.CALLS,
    )
    agent_database: str | None = setting(
        None,
        "Where service calls are stored: a path or `sqlite:///path`, or `postgresql://…`. Unset: `agent.db` in "
        "`data_dir`; with a PostgreSQL `store`, that database. Aliases for a file: `TIMER_DB_PATH`, `DB_PATH`.",
        topic=Topic.CALLS,
        rule=database_address,
    )
    agent_database_file: Path | None = setting(
        None,
        "File with the value of `agent.database`, for a URL with a password.",
        topic=Topic.CALLS,
    )
    agent_timer: AgentTimer = setting(
        "polling",
        "Where due times of service calls are kept: `polling`, in a table of the agent; `engine`, as timers of this "
        "node's store. Choose `engine` for very many waiting calls.",
        topic=Topic.CALLS,
        choices=get_args(AgentTimer),
    )
    broker: str | None = setting(
        None,
        "Message broker of the service agent: `nats://host:port` for NATS JetStream. Unset: messages stay in the "
        "process. Alias: `TIMER_BROKER_URL`.",
        topic=Topic.MESSAGES,
        rule=broker_address,
    )
    broker_file: Path | None = setting(
        None,
        "File with the value of `broker`, for a URL with a password or token.",
        topic=Topic.MESSAGES,
    )
    broker_prefix: str = setting(
        "svc",
        "First token of the agent's subjects on the broker. Each agent that shares a broker needs its own.",
        topic=Topic.MESSAGES,
        rule=subject_prefix,
    )

    nats_url: str | None = setting(
        None,
        "NATS server with JetStream to which timers with a callback URL `nats://subject` are published, such as "
        "`nats://host:port`. It may be that of `broker`: it gets a connection of its own.",
        topic=Topic.CALLBACKS,
        rule=broker_address,
    )
    nats_url_file: Path | None = setting(
        None,
        "File with the value of `nats_url`, for a URL with a password or token.",
        topic=Topic.CALLBACKS,
    )
    nats_targets: tuple[str, ...] = setting(
        (),
        "Subjects to which timers may be published, each as `namespace=subject`: `shop=orders` permits timers of the "
        "namespace `shop` the subject `orders` and all below it, such as `orders.created`.",
        topic=Topic.CALLBACKS,
        rule=subject_targets,
    )

    input: InputLimits = _part(InputLimits, Topic.TIMER, "")
    engine: EngineLimits = _part(EngineLimits, Topic.MEMORY, "")
    breaker: BreakerOptions = _part(BreakerOptions, Topic.CALLBACKS, "breaker")
    callbacks: CallbackLimits = _part(CallbackLimits, Topic.CALLBACKS, "callbacks")
    api: ApiLimits = _part(ApiLimits, Topic.REQUESTS, "api")
    cluster: ClusterLimits = _part(ClusterLimits, Topic.CLUSTER, "cluster")
    sqlite: SqliteOptions = _part(SqliteOptions, Topic.SQLITE, "sqlite")
    database: ServerOptions = _part(ServerOptions, Topic.DATABASE, "database")
    postgresql: PostgresOptions = _part(PostgresOptions, Topic.DATABASE, "postgresql")
    mysql: MysqlOptions = _part(MysqlOptions, Topic.DATABASE, "mysql")
    dynamodb: DynamoOptions = _part(DynamoOptions, Topic.DYNAMODB, "dynamodb")
    cassandra: CassandraOptions = _part(CassandraOptions, Topic.CASSANDRA, "cassandra")
    mongodb: MongoOptions = _part(MongoOptions, Topic.MONGODB, "mongodb")
    inbox: InboxOptions = _part(InboxOptions, Topic.INBOX, "inbox")
    agent: AgentLimits = _part(AgentLimits, Topic.CALLS, "agent")
    bus: BusLimits = _part(BusLimits, Topic.MESSAGES, "bus")
    agent_sql: SqlSettings = _part(SqlSettings, Topic.CALL_DATABASE, "agent_sql")
    oidc: OidcOptions = _part(OidcOptions, Topic.SECURITY, "oidc")
    mcp: McpOptions = _part(McpOptions, Topic.MCP, "mcp")
    ui: UiLimits = _part(UiLimits, Topic.PAGES, "ui")

    #: Where each setting that is not at its default comes from, by field: a flag, a variable, or a file and line.
    places: Mapping[str, str] = field(default_factory=dict, compare=False)

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

    def origin_hosts(self) -> list[str]:
        """The host names in `ui.origins`."""
        return [urlsplit(origin).hostname or "" for origin in self.ui_origins]

    def has_agent(self) -> bool:
        """Whether the service agent may run in this node."""
        if self.agent_enabled is not None:
            return self.agent_enabled
        elsewhere = ("mysql", "dynamodb", "cassandra", "mongodb", "mongodb+srv")
        return self.agent_database is not None or self.store_url().partition(":")[0] not in elsewhere

    def agent_database_url(self) -> str:
        """The URL of the agent's database: as set, or next to the timers."""
        if self.agent_database is not None:
            return self.agent_database
        scheme = self.store_url().partition(":")[0]
        if scheme == "memory":
            return "sqlite://"
        if scheme == "postgresql":
            return self.store_url()
        return f"sqlite:///{self.data_dir / 'agent.db'}"

    def application_name(self) -> str:
        """How the node names itself to a database server."""
        return f"tocsin {self.node_name}" if self.node_name else "tocsin"


#: Fields of parts, by part and field, that another part's setting fills too.
SHARED = {
    ("engine", "payload_bytes_max"): "payload_bytes_max",
    ("engine", "payload_depth_max"): "payload_depth_max",
    ("engine", "execute_ahead_max_us"): "execute_ahead_max",
    ("agent", "retry_after_max_us"): "retry_after_max",
    ("agent_sql", "synchronous"): "sqlite_synchronous",
    ("agent_sql", "busy_timeout_ms"): "sqlite_busy_timeout",
}

#: Settings whose values are never shown.
SECRETS = frozenset({"cluster_secret", "cluster_secret_former", "oidc_client_secret", "secrets_key"})
#: Settings whose values are secrets and may come from files. The one that names the file has the same name with `_file`.
SECRET_FIELDS = (
    "store",
    "agent_database",
    "broker",
    "nats_url",
    "inbox_url",
    "cluster_secret",
    "cluster_secret_former",
    "oidc_client_secret",
)
