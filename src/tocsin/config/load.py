"""Loading the settings, and telling where each came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from pydantic import ValidationError

from tocsin.config.alias import alias_of
from tocsin.config.file import did_you_mean, read_file
from tocsin.config.settings import ENV_PREFIX, PORT_MAX, SECRETS, Settings, env_name, fields_by_name, setting_name
from tocsin.config.values import redacted
from tocsin.model.errors import ConfigError
from tocsin.model.instants import format_duration

#: Variables with the prefix that are not settings of the server: the client commands' server and key, the tests'.
OTHER_ENV = frozenset({"TOCSIN_URL", "TOCSIN_KEY", "TOCSIN_TENANT", "TOCSIN_TEST_REQUIRE", "TOCSIN_WORKER"})


class Origin(Enum):
    """Which source a value came from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Source(NamedTuple):
    """Where a setting's value came from; `place` is the flag, the variable, or the file and line ("" for defaults)."""

    origin: Origin
    place: str


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force. `flags` by field; None values are flags that were not given.

    Raises ConfigError with one line for each bad setting: its name, its source, what is wrong and what would be right.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise ConfigError("\n".join(_explained(problem, given) for problem in error.errors())) from error
    _check_together(settings)
    return settings


def sources(flags: Mapping[str, Any] | None = None) -> dict[str, Source]:
    """Where each field's value comes from, under the same flags as were given to `load_settings`."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    path = given.get("config") or os.environ.get(env_name("config"))
    entries = read_file(path, fields_by_name()) if path else {}
    found = {}
    for field in Settings.model_fields:
        if field in given:
            found[field] = Source(Origin.FLAG, "--" + field.replace("_", "-"))
        elif any(variable.upper() == env_name(field) for variable in os.environ):
            found[field] = Source(Origin.ENVIRONMENT, env_name(field))
        elif (alias := alias_of(field, os.environ)) is not None:
            found[field] = Source(Origin.ENVIRONMENT, alias)
        elif field in entries:
            found[field] = Source(Origin.FILE, entries[field].place)
        else:
            found[field] = Source(Origin.DEFAULT, "")
    return found


def unknown_variables() -> list[str]:
    """A line for each TOCSIN_ variable of the environment that is no setting: probably a slip of the pen."""
    known = {env_name(field): field for field in Settings.model_fields}
    return [
        f"{name} is no setting{did_you_mean(name, known)}"
        for name in sorted(os.environ)
        if name.startswith(ENV_PREFIX) and name not in known and name not in OTHER_ENV
    ]


def _explained(problem: Mapping[str, Any], flags: Mapping[str, Any]) -> str:
    field = str(problem["loc"][0]) if problem["loc"] else "settings"
    source = sources(flags).get(field)
    reason = problem["msg"].removeprefix("Value error, ")
    reason = reason[:1].lower() + reason[1:]
    place = f" ({source.place})" if source and source.place else ""
    shown = "…" if field in SECRETS else problem["input"]
    return f"{setting_name(field)}{place}: {redacted(shown) if isinstance(shown, str) else shown!r} {reason}"


def _check_together(settings: Settings) -> None:
    """What no single setting can break."""
    limits, allowed, cluster = settings.engine_limits(), settings.input_limits(), settings.cluster_limits()
    rules = [
        ("heartbeat_interval", limits.heartbeat_interval_us, "node_lease", limits.node_lease_us),
        ("node_lease", limits.node_lease_us, "member_timeout", limits.member_timeout_us),
        ("member_timeout", limits.member_timeout_us, "member_forget", limits.member_forget_us),
        ("namespaces_interval", limits.namespaces_interval_us, "namespaces_lease", limits.namespaces_lease_us),
        ("callback_timeout_max", allowed.callback_timeout_max_us, "drain_timeout", limits.drain_timeout_us),
        ("cluster.tick_interval", cluster.keepalive_interval_us, "cluster.silence_max", cluster.peer_timeout_us),
    ]
    wrong = [
        f"{greater}: {format_duration(most)} has to be longer than {less} ({format_duration(least)})"
        for less, least, greater, most in rules
        if least >= most
    ]
    if limits.destination_in_flight_min > limits.destination_in_flight_max:
        wrong.append("destination_in_flight_min: has to be at most destination_in_flight_max")
    wrong += _against_frames(settings)
    if settings.workers > 1:
        wrong += _against_workers(settings)
    if wrong:
        raise ConfigError("\n".join(wrong))


def _against_frames(settings: Settings) -> list[str]:
    """What would make messages between nodes larger than they take: the last write of one may be of the greatest size."""
    cluster, payload_bytes = settings.cluster_limits(), settings.input_limits().payload_bytes_max
    largest_bytes = cluster.frame_fill_bytes + payload_bytes
    if cluster.frame_bytes_max > largest_bytes:
        return []
    return [
        f"cluster.frame_bytes_max: {cluster.frame_bytes_max} has to be more than cluster.frame_fill_bytes and "
        f"payload_bytes_max together ({largest_bytes})"
    ]


def _against_workers(settings: Settings) -> list[str]:
    """What keeps several processes from sharing the work."""
    wrong = []
    scheme = settings.store_url().partition(":")[0]
    if scheme in ("sqlite", "memory"):
        reason = "belongs to one process, which locks it" if scheme == "sqlite" else "is within one process"
        wrong.append(
            f"workers: a {scheme} store {reason}; several workers need a database server, --store postgresql://… or mysql://…"
        )
    if settings.advertise is not None and ":" in settings.advertise.rpartition("]")[2]:
        wrong.append("advertise: each worker has a port of its own; name the address alone")
    if settings.cluster_port and settings.cluster_port + settings.workers > PORT_MAX + 1:
        wrong.append(
            f"cluster.port: {settings.workers} workers have as many ports from it on, up to {PORT_MAX} at most"
        )
    return wrong
