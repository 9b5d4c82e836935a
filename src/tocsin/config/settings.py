"""Settings from flags, environment, a TOML file and defaults, the first that has one winning.

The engine's, the callbacks' and the input's limits are fields here too, made from the dataclasses that define them, so
that each limit is written down once. Names: a duration loses its `_us` and is written as `5m`; `egress`, `callbacks`,
`sqlite`, `postgresql` and `mysql` are tables of the file (`[egress]`, `allow = […]`), and `TOCSIN_EGRESS_ALLOW` in the
environment.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, create_model
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.agent.limits import AgentLimits
from tocsin.api.request import ApiLimits
from tocsin.buses.limits import BusLimits
from tocsin.callbacks.limits import CallbackLimits
from tocsin.cluster.limits import ClusterLimits
from tocsin.config.alias import read_aliases
from tocsin.config.file import Entry, read_file
from tocsin.config.mysql import MysqlFields, mysql_options
from tocsin.config.postgresql import PostgresqlFields, postgresql_options
from tocsin.config.values import (
    AgentTimer,
    Bytes,
    Count,
    Duration,
    LogFormat,
    LogLevel,
    Synchronous,
    YesNo,
    broker_address,
    byte_count,
    count,
    database_address,
    duration,
    egress_entries,
    factor,
    name_of_node,
    networks,
    one_of,
    origins,
    peer_address,
    redacted,
    secret,
    store_address,
    subject_prefix,
    words,
)
from tocsin.engine.limits import EngineLimits
from tocsin.model.errors import ConfigError
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.namespace import RETENTION_DEFAULT_US
from tocsin.model.validation import InputLimits
from tocsin.stores import TOTAL_SHARDS_DEFAULT, TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.ui.limits import UiLimits

#: More shards than this only cost: each commit and each heartbeat touches them.
SHARDS_MAX = 65_536
PORT_MAX = 65_535

_UNITS_US = (("_us", 1), ("_ms", 1_000), ("_s", US_PER_SECOND))

L = TypeVar(
    "L",
    EngineLimits,
    CallbackLimits,
    InputLimits,
    ApiLimits,
    AgentLimits,
    BusLimits,
    SqlSettings,
    UiLimits,
    ClusterLimits,
)

#: The dataclasses whose fields are settings, and the table of the file that each has, if it has one.
LIMITS: dict[type, str] = {
    EngineLimits: "",
    CallbackLimits: "callbacks",
    InputLimits: "",
    ApiLimits: "api",
    AgentLimits: "agent",
    BusLimits: "bus",
    SqlSettings: "agent_sql",
    ClusterLimits: "cluster",
    UiLimits: "ui",
}

ENV_PREFIX = "TOCSIN_"
#: Tables of the file. A field `egress_allow` of one of them is the setting `egress.allow`.
SECTIONS = ("egress", "callbacks", "api", "sqlite", "postgresql", "mysql", "agent", "bus", "agent_sql", "ui", "cluster")
#: What is never shown.
SECRETS = frozenset({"cluster_secret"})
#: Where nothing at all is a meaningful amount.
_ZERO_ALLOWED = frozenset(
    {
        "commit_interval",
        "commit_gather_max",
        "claim_backoff",
        "callbacks_answers_remembered_max",
        "sqlite_mmap_bytes",
        "execute_past_max",
        "cluster_leave_delay",
    }
)


#: Of the agent's database, what is set for the timers' SQLite store and holds for both.
_SHARED_WITH_SQLITE = {"synchronous": "sqlite_synchronous", "busy_timeout_ms": "sqlite_busy_timeout"}


def limit_setting(kind: type, field: dataclasses.Field[Any]) -> str:
    """The field of Settings that fills a limit. A callback limit that input has too is one setting for both, as is what
    both databases of SQLite have."""
    if kind is SqlSettings and field.name in _SHARED_WITH_SQLITE:
        return _SHARED_WITH_SQLITE[field.name]
    name = field.name.removesuffix("_us").removesuffix("_ms").removesuffix("_s")
    shared = {limit.name for limit in dataclasses.fields(InputLimits)}
    section = "" if kind is CallbackLimits and field.name in shared else LIMITS[kind]
    return f"{section}_{name}" if section else name


def _limit_fields() -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for kind in LIMITS:
        for field in dataclasses.fields(kind):
            name = limit_setting(kind, field)
            if name in _SHARED_WITH_SQLITE.values():
                continue
            least = 0 if name in _ZERO_ALLOWED else 1
            default: Any = field.default
            if _unit_us(field):
                rule: Any = partial(duration, least=least)
                default = round(default * _unit_us(field))
            elif "bytes" in name:
                rule = partial(byte_count, least=least)
            elif isinstance(default, float):
                rule = factor
            else:
                rule = partial(count, least=least)
            fields.setdefault(name, (Annotated[type(default), BeforeValidator(rule)], default))
    return fields


def _unit_us(field: dataclasses.Field[Any]) -> int:
    """Microseconds in the limit's unit; 0 for what is no duration."""
    return next((unit_us for suffix, unit_us in _UNITS_US if field.name.endswith(suffix)), 0)


def setting_name(field: str) -> str:
    """How a field is written in the file and in messages: `egress.allow` for `egress_allow`."""
    # `callbacks_in_flight_max` is the engine's own, not one of the table.
    own = {limit.name for limit in dataclasses.fields(EngineLimits)}
    # The longest name first: `agent_sql` begins as `agent` does.
    for section in sorted(SECTIONS, key=len, reverse=True):
        if field.startswith(f"{section}_") and field not in own:
            return f"{section}.{field.removeprefix(f'{section}_')}"
    return field


def env_name(field: str) -> str:
    """The environment variable of a field."""
    return ENV_PREFIX + field.upper()


def fields_by_name() -> dict[str, str]:
    return {setting_name(field): field for field in Settings.model_fields if field != "config"}


if TYPE_CHECKING:

    class _Limits(MysqlFields, PostgresqlFields):
        """The fields that the dataclasses add are not known to a type checker."""

else:
    _Limits = create_model("_Limits", __base__=(MysqlFields, PostgresqlFields), **_limit_fields())


class Settings(_Limits):
    """Everything that can be set, validated. Made by `load_settings`; immutable."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True, validate_default=False)

    config: Path | None = Field(None, description="The TOML file that the other settings are read from.")
    host: str = Field(
        "127.0.0.1",
        min_length=1,
        description="Address to listen on. One that other machines can reach needs API keys, or `insecure`. On a loopback "
        ""
        "address keys are asked for once one exists, or `ui.origins` names an address that isn't loopback.",
    )
    port: Annotated[int, BeforeValidator(partial(count, least=0, most=PORT_MAX))] = Field(
        8080, description="Port to listen on; 0 takes a free one."
    )
    data_dir: Path = Field(
        Path("data"),
        description="Folder for the SQLite databases (timers, service calls) and their locks; made when it is missing.",
    )
    store: Annotated[str, BeforeValidator(store_address)] | None = Field(
        None,
        description="Where timers are kept: `sqlite:///relative/path`, `sqlite:////absolute/path`, "
        "`postgresql://user:password@host:port/database`, the same with `mysql://` (MariaDB too), or "
        "`memory://`, which "
        "forgets. Unset: `tocsin.db` in `data_dir`.",
    )
    broker: Annotated[str | None, BeforeValidator(broker_address)] = Field(
        None,
        description="Where the service agent's modules exchange messages: `nats://host:port` for NATS JetStream. Unset: "
        "within the process. Alias: `TIMER_BROKER_URL`.",
    )
    broker_prefix: Annotated[str, BeforeValidator(subject_prefix)] = Field(
        "svc", description="First word of the agent's subjects on the broker; each agent on one broker needs its own."
    )
    shards: Annotated[int, BeforeValidator(partial(count, most=SHARDS_MAX))] | None = Field(
        None,
        description="Partitions of all timers, fixed at the first start. Unset: what the store has; for a new one "
        f"{TOTAL_SHARDS_DEFAULT}, on a database server {TOTAL_SHARDS_SHARED_DEFAULT}. Raised: more nodes can share the work, "
        "and each commit costs a little more.",
    )
    namespace_num_shards: Count = Field(
        16,
        description="Shards of a namespace that is created without `numShards` (at most `shards`). Raised: its timers "
        "spread over more nodes.",
    )
    node_name: Annotated[str | None, BeforeValidator(name_of_node)] = Field(
        None,
        description="This node's name in `GET /cluster`, by which it gets its share of the shards: no two nodes may have "
        "the "
        "same. Unset: the host's name and the port.",
    )
    workers: Count = Field(
        1,
        description="Processes that serve the port together, each a node of its own. They need a `store` to share. "
        "Raised: more cores are used.",
    )
    advertise: Annotated[str, BeforeValidator(peer_address)] | None = Field(
        None,
        description="The address, or address and port, at which other nodes reach this one. Unset: `host`; where that "
        "means every address, the one from which this node reaches the database, or the host's name if that is on this "
        "machine.",
    )
    cluster_port: Annotated[int, BeforeValidator(partial(count, least=0, most=PORT_MAX))] = Field(
        0, description="Port for the other nodes; 0 takes a free one. Worker n of several takes the n-th after it."
    )
    cluster_secret: Annotated[str, BeforeValidator(secret)] | None = Field(
        None,
        description="What the nodes of a cluster, and nobody else, know: at least 16 characters, the same for all of "
        "them. "
        "Unset: a random one that the store keeps for them.",
    )
    insecure: YesNo = Field(
        False,
        description="Never ask for an API key, although others than this machine can reach the server, or keys exist.",
    )
    keys_refresh: Duration = Field(
        2 * US_PER_SECOND,
        description="How often API keys and sign-ins are read again, and so how soon a revoked one ends. Lowered: sooner, "
        "for more queries.",
    )
    keys_expiry_notice: Duration = Field(
        14 * 86_400 * US_PER_SECOND,
        description="How long before an API key expires the log, once a day, and the metric `tocsin_api_keys_expiring` "
        "begin to say so.",
    )
    audit_retention: Duration = Field(
        90 * 86_400 * US_PER_SECOND,
        description="How long entries of the audit trail are kept. Raised: a larger database.",
    )
    trusted_proxies: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(networks)] = Field(
        default_factory=list,
        description="Addresses and networks of proxies whose header `X-Forwarded-For` names the client for the log, for "
        "the "
        "audit trail and for the limit on wrong keys. Unset: the address that the connection comes from counts.",
    )
    log_level: Annotated[LogLevel, BeforeValidator(partial(one_of, ("debug", "info", "warning", "error")))] = Field(
        "info", description="Least severity that is logged: `debug`, `info`, `warning` or `error`."
    )
    log_format: Annotated[LogFormat, BeforeValidator(partial(one_of, ("auto", "console", "json")))] = Field(
        "auto", description="`console`, `json`, or `auto`: console on a terminal, else JSON."
    )
    metrics_open: YesNo | None = Field(
        None, description="Whether `/metrics` is served without a key. Unset: only where nothing else needs one."
    )
    keep_alive_timeout: Duration = Field(
        75 * US_PER_SECOND,
        description="How long a client's idle connection is kept open. Keep it longer than a proxy's own limit, so that "
        "it isn't the server that closes.",
    )
    api_connections_max: Count | None = Field(
        None,
        description="Connections of clients that a process takes. Beyond it the one closes whose client has kept the "
        "server "
        "waiting longest; while all are being answered, the new one does. Unset: what the limit on open files "
        "leaves beside "
        "callbacks, stores and other nodes (at least half of it), at most 10,000.",
    )
    history_retention: Duration = Field(
        RETENTION_DEFAULT_US,
        description="How long finished timers stay visible in namespaces created without a retention of their own. "
        "Raised: a larger database.",
    )
    egress_allow: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(egress_entries)] = Field(
        default_factory=list,
        description="Addresses, networks and host names, each with or without a port, that callbacks may reach although "
        "they are not on the public Internet.",
    )
    egress_allow_private: YesNo | None = Field(
        None,
        description="Whether callbacks may reach any loopback, private and link-local address. Unset: only when `host` is "
        ""
        "a loopback address and no request needs a key.",
    )
    ui_origins: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(origins)] = Field(
        default_factory=list,
        description="Origins under which people reach the web pages besides the address that is listened on, such as "
        "`https://tocsin.example` where a proxy ends TLS. Pages answer under no other name.",
    )
    agent_enabled: YesNo | None = Field(
        None,
        description="Whether the service agent runs beside the timer service. Unset: yes; but with a MySQL `store` only "
        "where `agent.database` is set: a file of each node's own would hide calls from the other nodes.",
    )
    agent_database: Annotated[str, BeforeValidator(database_address)] | None = Field(
        None,
        description="Where the agent keeps its tables: a path or `sqlite:///path`, or `postgresql://…`. Unset: `agent.db` "
        "in "
        "`data_dir`; with a PostgreSQL `store` that database. Aliases for a file: `TIMER_DB_PATH`, `DB_PATH`.",
    )
    agent_timer: Annotated[AgentTimer, BeforeValidator(partial(one_of, ("polling", "engine")))] = Field(
        "polling",
        description="Where due times of service calls wait: `polling`, in a table of the agent's; `engine`, as timers of "
        "this node's store. Choose `engine` for very many waiting calls.",
    )
    sqlite_synchronous: Annotated[Synchronous, BeforeValidator(partial(one_of, ("FULL", "NORMAL")))] = Field(
        "FULL",
        description="`FULL` waits for the disk at every commit and keeps acknowledged writes through a power cut; "
        "`NORMAL` is faster and may lose the last moments then. Holds for the agent's database, too.",
    )
    sqlite_cache_bytes: Bytes = Field(
        64 << 20,
        description="Memory for pages of the timers' database in the connection that writes. Raised: fewer reads from "
        "disk with many pending timers.",
    )
    sqlite_read_cache_bytes: Bytes = Field(
        8 << 20, description="Memory for pages in each connection that reads, for lists and loads."
    )
    sqlite_mmap_bytes: Annotated[int, BeforeValidator(partial(byte_count, least=0))] = Field(
        0, description="How much of the timers' database is mapped into memory instead of being read; 0 maps nothing."
    )
    sqlite_wal_checkpoint_pages: Count = Field(
        20_000,
        description="Pages in the timers' write-ahead log after which a commit copies them into the file. Raised: fewer, "
        "longer copies.",
    )
    sqlite_wal_bytes_max: Bytes = Field(
        256 << 20, description="Bytes that the timers' write-ahead log may keep on disk after it was copied."
    )
    sqlite_busy_timeout: Duration = Field(
        5 * US_PER_SECOND,
        description="How long a transaction waits while another program, such as a backup, writes to the file. Holds for "
        "the agent's database, too.",
    )

    def engine_limits(self) -> EngineLimits:
        """The engine's share of the settings."""
        return self._filled(EngineLimits)

    def callback_limits(self) -> CallbackLimits:
        """The callback client's share."""
        return self._filled(CallbackLimits)

    def input_limits(self) -> InputLimits:
        """The API's share."""
        return self._filled(InputLimits)

    def api_limits(self) -> ApiLimits:
        """The HTTP server's share."""
        return self._filled(ApiLimits)

    def _filled(self, kind: type[L]) -> L:
        values = {}
        for field in dataclasses.fields(kind):
            value = getattr(self, limit_setting(kind, field))
            if field.name.endswith("_ms"):
                value = max(1, value // 1_000)
            elif field.name.endswith("_s"):
                value = value / US_PER_SECOND
            values[field.name] = value
        return kind(**values)

    def ui_limits(self) -> UiLimits:
        """The web pages' share."""
        return self._filled(UiLimits)

    def agent_limits(self) -> AgentLimits:
        """The service agent's share."""
        return self._filled(AgentLimits)

    def bus_limits(self) -> BusLimits:
        """The bus's share."""
        return self._filled(BusLimits)

    def cluster_limits(self) -> ClusterLimits:
        """What is sent between nodes."""
        return self._filled(ClusterLimits)

    def sql_settings(self) -> SqlSettings:
        """How the agent's database is used."""
        return self._filled(SqlSettings)

    def has_agent(self) -> bool:
        """Whether the service agent may run in this node."""
        if self.agent_enabled is not None:
            return self.agent_enabled
        return self.agent_database is not None or self.store_url().partition(":")[0] != "mysql"

    def agent_database_url(self) -> str:
        """The URL of the agent's database: as set, or beside the timers."""
        if self.agent_database is not None:
            return self.agent_database
        scheme = self.store_url().partition(":")[0]
        if scheme == "memory":
            return "sqlite://"
        if scheme == "postgresql":
            return self.store_url()
        return f"sqlite:///{self.data_dir / 'agent.db'}"

    def store_url(self) -> str:
        """The store's URL, `sqlite:///<data_dir>/tocsin.db` unless another was chosen."""
        return self.store or f"sqlite:///{self.data_dir / 'tocsin.db'}"

    def store_url_redacted(self) -> str:
        """The store's URL for people and logs: without a password."""
        return redacted(self.store_url())

    def sqlite_path(self) -> Path:
        """The file of a `sqlite:///` store; ConfigError for another kind of store."""
        url = self.store_url()
        if not url.startswith("sqlite:///"):
            raise ConfigError(f"store: {redacted(url)} is no file; this needs a sqlite:///path")
        return Path(url.removeprefix("sqlite:///"))

    def sqlite_options(self) -> dict[str, Any]:
        """Keyword arguments of SqliteStore."""
        return {
            "synchronous": self.sqlite_synchronous,
            "cache_bytes": self.sqlite_cache_bytes,
            "read_cache_bytes": self.sqlite_read_cache_bytes,
            "mmap_bytes": self.sqlite_mmap_bytes,
            "wal_checkpoint_pages": self.sqlite_wal_checkpoint_pages,
            "wal_bytes_max": self.sqlite_wal_bytes_max,
            "busy_timeout_ms": max(1, self.sqlite_busy_timeout // 1_000),
        }

    def postgresql_options(self) -> dict[str, Any]:
        """Keyword arguments of PostgresStore. Each of the engine's lanes has a writing connection."""
        return {
            **postgresql_options(self),
            "writers": self.engine_limits().lanes,
            "application_name": f"tocsin {self.node_name}" if self.node_name else "tocsin",
        }

    def mysql_options(self) -> dict[str, Any]:
        """Keyword arguments of MysqlStore. Each of the engine's lanes has a writing connection."""
        return {
            **mysql_options(self),
            "writers": self.engine_limits().lanes,
            "application_name": f"tocsin {self.node_name}" if self.node_name else "tocsin",
        }

    def retention_us(self) -> int:
        """Retention of a namespace created without one, microseconds."""
        return self.history_retention

    @property
    def keys_refresh_s(self) -> float:
        """`keys_refresh` in seconds."""
        return self.keys_refresh / US_PER_SECOND

    @property
    def keys_expiry_notice_s(self) -> float:
        """`keys_expiry_notice` in seconds."""
        return self.keys_expiry_notice / US_PER_SECOND

    @property
    def audit_retention_s(self) -> float:
        """`audit_retention` in seconds."""
        return self.audit_retention / US_PER_SECOND

    def origin_hosts(self) -> list[str]:
        """The names in `ui.origins`."""
        return [urlsplit(origin).hostname or "" for origin in self.ui_origins]

    @property
    def keep_alive_timeout_s(self) -> int:
        """`keep_alive_timeout` in seconds, rounded up: the HTTP server counts whole ones."""
        return -(-self.keep_alive_timeout // US_PER_SECOND)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then its aliases, then the file; no `.env`, which would make settings depend on the
        working folder."""
        flags = cast(Any, init_settings).init_kwargs
        path = flags.get("config") or os.environ.get(ENV_PREFIX + "CONFIG")
        return (
            init_settings,
            env_settings,
            _EntrySource(settings_cls, read_aliases(os.environ)),
            _EntrySource(settings_cls, read_file(path, fields_by_name()) if path else {}),
        )


class _EntrySource(PydanticBaseSettingsSource):
    def __init__(self, settings_cls: type[BaseSettings], entries: Mapping[str, Entry]) -> None:
        super().__init__(settings_cls)
        self._entries = entries

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        entry = self._entries.get(field_name)
        return (entry.value if entry else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        return {name: entry.value for name, entry in self._entries.items()}


def is_duration(field: str) -> bool:
    """Whether the field holds microseconds and is written as a duration."""
    rules = [rule.func for rule in Settings.model_fields[field].metadata if isinstance(rule, BeforeValidator)]
    return any((rule.func if isinstance(rule, partial) else rule) is duration for rule in rules)
