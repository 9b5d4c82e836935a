"""Loads the settings, and reports where each comes from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from tocsin.model.errors import ConfigError
from tocsin.model.instants import format_duration
from tocsin.model.setting_values import PORT_MAX, redacted
from tocsin.model.subjects import parse_target
from tocsin.settings.declared import ENV_PREFIX, SETTINGS, Setting, env_name, made, setting_name
from tocsin.settings.settings import SECRETS, Settings
from tocsin.settings.sources import Entry, Origin, Source, entries_of, fault_of
from tocsin.telemetry.audit_export import STDOUT

#: Variables with the prefix that are not settings: the one that names the settings file, and those of the client commands, of
#: `tocsin.native`, of worker processes, of the SDKs' test servers and of the tests.
OTHER_ENV = frozenset(
    {
        "TOCSIN_CONFIG",
        "TOCSIN_BIN",
        "TOCSIN_URL",
        "TOCSIN_KEY",
        "TOCSIN_KEY_FILE",
        "TOCSIN_NATIVE",
        "TOCSIN_TENANT",
        "TOCSIN_TEST_REQUIRE",
        "TOCSIN_WORKER",
    }
)


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force. `flags` by field, and `config`, the settings file; None stands for a flag that was not given.

    Raises ConfigError with one line for each bad setting: its name, its source, what is wrong and how to write it.
    """
    entries, values, wrong = entries_of(_given(flags)), {}, []
    for field, setting in SETTINGS.items():
        if field in entries:
            try:
                values[field] = setting.parse(entries[field].value)
            except ValueError as error:
                wrong.append(_explained(setting, entries[field], str(error)))
    if wrong:
        raise ConfigError("\n".join(wrong))
    places = {field: entry.source.place for field, entry in entries.items()}
    settings = dataclasses.replace(made(values), places=places)
    _check_together(settings)
    return settings


def sources(flags: Mapping[str, Any] | None = None) -> dict[str, Source]:
    """Where each field's value comes from, for the flags that were given to `load_settings`."""
    entries, default = entries_of(_given(flags)), Source(Origin.DEFAULT, "")
    return {field: entries[field].source if field in entries else default for field in SETTINGS}


def _given(flags: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (flags or {}).items() if value is not None}


def unknown_variables() -> list[str]:
    """A line for each TOCSIN_ variable of the environment that is not a setting, probably a misspelled one."""
    known = [env_name(field) for field in SETTINGS]
    own = sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in OTHER_ENV)
    return [f"{name} {fault_of(name, known)}" for name in own if name not in known]


def _explained(setting: Setting, entry: Entry, reason: str) -> str:
    shown = "…" if setting.field in SECRETS or entry.secret else entry.value
    shown = redacted(shown) if isinstance(shown, str) else shown
    return f"{setting.name} ({entry.source.place}): {shown!r} {reason}"


def _check_together(settings: Settings) -> None:
    """Raises ConfigError for settings that contradict one another."""
    limits, allowed, cluster = settings.engine, settings.input, settings.cluster
    rules = [
        ("heartbeat_interval", limits.heartbeat_interval_us, "node_lease", limits.node_lease_us),
        ("node_lease", limits.node_lease_us, "member_timeout", limits.member_timeout_us),
        ("namespaces_interval", limits.namespaces_interval_us, "namespaces_lease", limits.namespaces_lease_us),
        ("callback_timeout_max", allowed.callback_timeout_max_us, "drain_timeout", limits.drain_timeout_us),
        ("the keep-alive interval", cluster.keepalive_interval_us, "cluster.peer_timeout", cluster.peer_timeout_us),
    ]
    wrong = [
        f"{greater}: {format_duration(most)} must be longer than {less} ({format_duration(least)})"
        for less, least, greater, most in rules
        if least >= most
    ]
    if limits.member_timeout_us >= limits.member_forget_us:
        wrong.append(
            f"member_timeout: {format_duration(limits.member_timeout_us)} must be shorter than "
            f"{format_duration(limits.member_forget_us)}, after which a node is forgotten"
        )
    payload_bytes_max = cluster.frame_bytes_max - cluster.frame_fill_bytes - 1
    if allowed.payload_bytes_max > payload_bytes_max:
        wrong.append(
            f"payload_bytes_max: {allowed.payload_bytes_max} must be at most {payload_bytes_max}, what a message between "
            "nodes can carry"
        )
    if settings.inbox.url is not None and not settings.inbox.namespaces:
        wrong.append("inbox.namespaces: is missing; list the namespaces in which rows of inbox.url may create timers")
    wrong += _about_tls(settings)
    wrong += _about_oidc(settings)
    wrong += _about_nats(settings)
    given = [f"secrets.{each}" for each in ("key", "key_file", "key_command") if getattr(settings.secrets, each)]
    if len(given) > 1:
        wrong.append(f"{given[1]}: conflicts with {given[0]}; set one of them")
    if settings.workers > 1:
        wrong += _against_workers(settings)
    if wrong:
        raise ConfigError("\n".join(wrong))


def _about_nats(settings: Settings) -> list[str]:
    """Settings of NATS targets that lack another, or that would let timers speak to the service agent."""
    if settings.nats_targets and settings.nats_url is None:
        return ["nats_targets: requires nats_url, the server on which these subjects are"]
    prefix, wrong = settings.broker_prefix, []
    for entry in settings.nats_targets:
        first = parse_target(entry)[1].partition(".")[0]
        if first == prefix or first.startswith(f"{prefix}-"):
            wrong.append(f"nats_targets: {entry!r} leads to the agent's own subjects (broker_prefix); choose others")
    return wrong


def _about_oidc(settings: Settings) -> list[str]:
    """Settings of the identity provider that lack others, or by which nobody or anybody could sign in."""
    oidc = settings.oidc
    if oidc.issuer is None:
        return []
    wrong = []
    if oidc.client_id is None:
        wrong.append(
            "oidc.client_id: is missing; it is what the provider of oidc.issuer has registered this server under"
        )
    if not oidc.grants:
        wrong.append("oidc.grants: is missing, so that nobody could do anything; list at least one, such as ops=admin")
    if oidc.audience is not None and oidc.audience == oidc.client_id:
        wrong.append("oidc.audience: must not be oidc.client_id, or ID tokens would be taken for access tokens")
    return wrong


def _about_tls(settings: Settings) -> list[str]:
    """Settings of TLS between nodes that lack others."""
    files = ("cluster_tls_certificate_file", "cluster_tls_key_file", "cluster_tls_ca_file")
    missing = [setting_name(field) for field in files if SETTINGS[field].value(settings) is None]
    if missing and len(missing) < len(files):
        return [
            f"{name}: is missing; TLS between nodes requires a certificate, its key and an authority"
            for name in missing
        ]
    return []


def _against_workers(settings: Settings) -> list[str]:
    """The settings that prevent several processes from sharing the work."""
    wrong = []
    scheme = settings.store_url().partition(":")[0]
    if scheme in ("sqlite", "memory"):
        reason = "belongs to one process, which locks it" if scheme == "sqlite" else "is within one process"
        wrong.append(
            f"workers: a {scheme} store {reason}; several workers require a database server, --store postgresql://… or "
            "mysql://…"
        )
    if settings.advertise is not None and ":" in settings.advertise.rpartition("]")[2]:
        wrong.append("advertise: each worker has its own port; write the address without a port")
    if settings.audit_export.file == STDOUT:
        wrong.append(
            "audit_export.file: lines of several workers would be mixed on standard output; name a file, which they share"
        )
    if settings.cluster_port and settings.cluster_port + settings.workers > PORT_MAX + 1:
        wrong.append(
            f"cluster.port: {settings.workers} workers need as many ports from {settings.cluster_port} on; the last would be "
            f"above {PORT_MAX}"
        )
    return wrong
