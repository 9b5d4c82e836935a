"""All settings, from flags, environment, a TOML file and defaults, in this order of precedence.

`tocsin.settings.groups` declares them. To add one, declare a field in its group; if it fills a limit of a limits dataclass,
name it after the limit (`tocsin.settings.limits`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tocsin.cluster.limits import ClusterLimits
from tocsin.http_client.limits import CallbackLimits
from tocsin.messaging.limits import BusLimits
from tocsin.model.validation import InputLimits
from tocsin.service_calls.limits import AgentLimits
from tocsin.settings.alias import read_aliases
from tocsin.settings.file import Entry, read_file
from tocsin.settings.groups.access import Egress, Security
from tocsin.settings.groups.agent import AgentDatabase, Messaging, ServiceCalls
from tocsin.settings.groups.base import Group
from tocsin.settings.groups.cluster import Cluster
from tocsin.settings.groups.databases import Cassandra, DatabaseServer, Dynamodb, Mongodb, Sqlite
from tocsin.settings.groups.http import Requests, WebPages
from tocsin.settings.groups.server import LoggingAndShutdown, Server, Tracing
from tocsin.settings.groups.timers import Callbacks, MemoryAndThroughput, Retention, TimerLimits
from tocsin.settings.limits import filled
from tocsin.settings.names import ENV_PREFIX, env_name, setting_name
from tocsin.settings.secret_files import SECRET_FIELDS, SUFFIX, secrets_of_environment, secrets_of_file
from tocsin.settings.values import byte_count, duration, has_rule
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.timers.engine.limits import EngineLimits
from tocsin.web.api.request import ApiLimits
from tocsin.web.pages.limits import UiLimits

#: Settings whose values are never shown.
SECRETS = frozenset({"cluster_secret", "cluster_secret_former"})


class Settings(
    Server,
    Security,
    Egress,
    LoggingAndShutdown,
    Tracing,
    Callbacks,
    MemoryAndThroughput,
    TimerLimits,
    Retention,
    Requests,
    Cluster,
    Sqlite,
    DatabaseServer,
    Dynamodb,
    Cassandra,
    Mongodb,
    ServiceCalls,
    Messaging,
    AgentDatabase,
    WebPages,
    BaseSettings,
):
    """Everything that can be set, validated and immutable. `load_settings` makes it."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True, validate_default=False)

    config: Path | None = Field(None, description="The TOML file with the other settings.")

    def engine_limits(self) -> EngineLimits:
        """The engine's limits."""
        return filled(EngineLimits(), self)

    def callback_limits(self) -> CallbackLimits:
        """The callback client's limits."""
        return filled(CallbackLimits(), self)

    def input_limits(self) -> InputLimits:
        """The limits of what clients send."""
        return filled(InputLimits(), self)

    def api_limits(self) -> ApiLimits:
        """The HTTP server's limits."""
        return filled(ApiLimits(), self)

    def ui_limits(self) -> UiLimits:
        """The web pages' limits."""
        return filled(UiLimits(), self)

    def agent_limits(self) -> AgentLimits:
        """The service agent's limits."""
        return filled(AgentLimits(), self)

    def bus_limits(self) -> BusLimits:
        """The bus's limits."""
        return filled(BusLimits(), self)

    def cluster_limits(self) -> ClusterLimits:
        """The limits of the traffic between nodes."""
        return filled(ClusterLimits(), self)

    def sql_settings(self) -> SqlSettings:
        """How the agent's database is used."""
        return filled(SqlSettings(), self)

    def has_agent(self) -> bool:
        """Whether the service agent may run in this node."""
        if self.agent_enabled is not None:
            return self.agent_enabled
        elsewhere = ("mysql", "dynamodb", "cassandra", "mongodb", "mongodb+srv")
        return self.agent_database is not None or self.store_url().partition(":")[0] not in elsewhere

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

    def postgresql_options(self) -> dict[str, Any]:
        """Keyword arguments of PostgresStore."""
        return {**super().postgresql_options(), "application_name": self._application_name()}

    def mysql_options(self) -> dict[str, Any]:
        """Keyword arguments of MysqlStore."""
        return {**super().mysql_options(), "application_name": self._application_name()}

    def dynamodb_options(self) -> dict[str, Any]:
        """Keyword arguments of DynamoStore."""
        return {**super().dynamodb_options(), "application_name": self._application_name()}

    def cassandra_options(self) -> dict[str, Any]:
        """Keyword arguments of CassandraStore."""
        return {**super().cassandra_options(), "application_name": self._application_name()}

    def mongodb_options(self) -> dict[str, Any]:
        """Keyword arguments of MongoStore."""
        return {**super().mongodb_options(), "application_name": self._application_name()}

    def _application_name(self) -> str:
        return f"tocsin {self.node_name}" if self.node_name else "tocsin"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then its aliases, then the file. Not `.env`, which would make settings depend on the
        working directory. A secret from a file has the precedence of the setting that names the file."""
        flags = cast(Any, init_settings).init_kwargs
        from_environment, from_file = entries_of(flags)
        return (
            init_settings,
            env_settings,
            _EntrySource(settings_cls, from_environment),
            _EntrySource(settings_cls, from_file),
        )


#: The groups, in the order in which they are listed.
GROUPS: tuple[type[Group], ...] = tuple(base for base in Settings.__bases__ if issubclass(base, Group))


def entries_of(flags: Mapping[str, Any]) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """What aliases and secret files of the environment set, and what the settings file sets. Raises ConfigError."""
    path = flags.get("config") or os.environ.get(ENV_PREFIX + "CONFIG")
    environment = read_aliases(os.environ) | secrets_of_environment(os.environ, flags)
    entries = read_file(path, fields_by_name()) if path else {}
    variables = {name.upper() for name in os.environ}
    known = {field for field in SECRET_FIELDS if field in flags or env_name(field) in variables} | environment.keys()
    return environment, secrets_of_file(entries, known) | entries


class _EntrySource(PydanticBaseSettingsSource):
    def __init__(self, settings_cls: type[BaseSettings], entries: Mapping[str, Entry]) -> None:
        super().__init__(settings_cls)
        self._entries = entries

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        entry = self._entries.get(field_name)
        return (entry.value if entry else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        return {name: entry.value for name, entry in self._entries.items()}


def fields_by_name() -> dict[str, str]:
    """The field of each setting, by the setting's name. The name of the file itself is none."""
    return {setting_name(field): field for field in Settings.model_fields if field != "config"}


def secret_files(settings: Settings) -> dict[str, Path | None]:
    """The files with secrets that the settings name, by setting."""
    fields = [field + SUFFIX for field in SECRET_FIELDS] + ["admin_key_file", "cluster_tls_key_file"]
    return {setting_name(field): getattr(settings, field) for field in fields}


def holds_duration(field: str) -> bool:
    """Whether the field holds microseconds and is written as a duration."""
    return has_rule(Settings.model_fields[field].metadata, duration)


def holds_bytes(field: str) -> bool:
    """Whether the field holds a number of bytes."""
    return has_rule(Settings.model_fields[field].metadata, byte_count)
