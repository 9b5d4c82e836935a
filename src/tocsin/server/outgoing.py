"""What a node sends requests with: the HTTP client, where it may connect to, and what requests may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.model.validation import InputRules
from tocsin.ports.clock import Clock
from tocsin.server.access import Keyring
from tocsin.settings import Settings


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The HTTP client of callbacks and service calls, and the rules for what it is asked to send."""

    client: HttpCaller
    rules: InputRules

    def gauges(self) -> dict[str, float]:
        """The client's gauges."""
        return {
            "tocsin_callback_connections": self.client.connections,
            "tocsin_agent_connections": self.client.agent_connections,
            "tocsin_names_resolving": self.client.resolving,
        }


def outgoing(
    settings: Settings, keys: Keyring, clock: Clock, *, published: bool, signed_by: Clock | None = None
) -> Outgoing:
    """Unless `egress.allow_private` is set, private addresses are allowed as long as only programs of this machine reach the
    server without a key."""
    open_here = not published and not keys.required
    allow_private = open_here if settings.egress.allow_private is None else settings.egress.allow_private
    egress, limits = EgressPolicy(allow_private, settings.egress.allow), settings.callbacks
    rules = InputRules(
        settings.input,
        egress.check_url,
        headers_sent_max=limits.request_headers_max,
        header_bytes_sent_max=limits.request_header_bytes_max,
    )
    client = HttpCaller(limits, egress, clock, signed_by=signed_by)
    keys.on_required = partial(_close_egress, settings, egress, rules, client)
    return Outgoing(client, rules)


def _close_egress(settings: Settings, egress: EgressPolicy, rules: InputRules, client: HttpCaller) -> None:
    """Applies the first key, created while this server accepted every program of its machine without a key."""
    if settings.egress.allow_private is None:
        egress.allow_private = False
        rules.forget_targets()
        client.rules_changed()
    structlog.get_logger("tocsin.server").warning(
        "API keys now required", effect="callbacks to private addresses now require egress.allow"
    )
