"""What a node sends requests with: the HTTP client, where it may connect to, and what requests may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.model.errors import ConfigError
from tocsin.model.subjects import SubjectTargets
from tocsin.model.validation import InputRules
from tocsin.ports.clock import Clock
from tocsin.ports.http import Caller
from tocsin.ports.records import Records
from tocsin.ports.seals import Seals
from tocsin.server.access import Keyring
from tocsin.server.extras import is_installed
from tocsin.settings import Settings
from tocsin.targets.callers import ByScheme
from tocsin.targets.credentials import CredentialCaller
from tocsin.targets.signing_keys import SigningKeys
from tocsin.telemetry.clock import SystemClock

if TYPE_CHECKING:
    from tocsin.targets.nats import NatsCaller


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The HTTP client of callbacks and service calls, and the rules for what it is asked to send."""

    client: HttpCaller
    #: What sends timers: the client, or the one by the scheme of a URL.
    caller: Caller
    rules: InputRules
    #: What gives timers' requests their credentials.
    credentials: CredentialCaller
    _nats: NatsCaller | None = None

    def gauges(self) -> dict[str, float]:
        """The gauges of what sends."""
        return {
            "tocsin_nats_connected": float(self._nats is not None and self._nats.connected),
            "tocsin_callback_connections": self.client.connections,
            "tocsin_agent_connections": self.client.agent_connections,
            "tocsin_names_resolving": self.client.resolving,
            "tocsin_credentials_without_token": self.credentials.without_token,
        }


def outgoing(
    settings: Settings,
    keys: Keyring,
    clock: Clock,
    seals: Seals,
    signing: SigningKeys | None = None,
    *,
    published: bool,
    signed_by: Clock | None = None,
) -> Outgoing:
    """Unless `egress.allow_private` is set, private addresses are allowed as long as only programs of this machine reach the
    server without a key."""
    open_here = not published and not keys.required
    allow_private = open_here if settings.egress.allow_private is None else settings.egress.allow_private
    egress, limits = EgressPolicy(allow_private, settings.egress.allow), settings.callbacks
    subjects = None if settings.nats_url is None else SubjectTargets(settings.nats_targets)
    rules = InputRules(
        settings.input,
        egress.check_url,
        headers_sent_max=limits.request_headers_max,
        header_bytes_sent_max=limits.request_header_bytes_max,
        subjects=subjects,
    )
    client = HttpCaller(limits, egress, clock, signed_by=signed_by)
    keys.on_required = partial(_close_egress, settings, egress, rules, client)
    if settings.nats_url is None or subjects is None:
        credentials = CredentialCaller(ByScheme(client, None), client, signed_by or clock, seals, signing)
        return Outgoing(client, credentials, rules, credentials)
    # A driver that is an extra.
    from tocsin.targets.nats import NatsCaller

    nats = NatsCaller(settings.nats_url, subjects, settings.bus, limits, signed_by or clock)
    credentials = CredentialCaller(ByScheme(client, nats), client, signed_by or clock, seals, signing)
    return Outgoing(client, credentials, rules, credentials, nats)


def signing_keys(settings: Settings, records: Records, clock: Clock, seals: Seals) -> SigningKeys | None:
    """The keys of JWTs for receivers; None where these could not find them, or what signs is not installed."""
    if settings.public_url is None or not is_installed("oidc"):
        return None
    return SigningKeys(records, clock, seals, settings.public_url, settings.engine.store_timeout_us / 1e6)


def known_signing_keys(settings: Settings, records: Records, seals: Seals) -> SigningKeys:
    """The same for a command, which signs nothing. Raises ConfigError where the extra is not installed."""
    if not is_installed("oidc"):
        raise ConfigError("what signs JWTs is not installed; install tocsin[oidc]")
    return SigningKeys(records, SystemClock(), seals, "", settings.engine.store_timeout_us / 1e6)


def _close_egress(settings: Settings, egress: EgressPolicy, rules: InputRules, client: HttpCaller) -> None:
    """Applies the first key, created while this server accepted every program of its machine without a key."""
    if settings.egress.allow_private is None:
        egress.allow_private = False
        rules.forget_targets()
        client.rules_changed()
    structlog.get_logger("tocsin.server").warning(
        "API keys now required", effect="callbacks to private addresses now require egress.allow"
    )
