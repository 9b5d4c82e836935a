"""Who may use the server, and which addresses it may call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from tocsin.model.instants import US_PER_SECOND
from tocsin.settings.groups.base import Group
from tocsin.settings.values import Duration, YesNo, egress_entries, networks, origins, seconds, words
from tocsin.web.pages.limits import UiLimits


class Security(Group):
    """API keys, sessions and proxies."""

    title: ClassVar[str] = "Security"
    intro: ClassVar[str] = "Who may use the server. [How to secure a server](../how-to/secure.md)."

    insecure: YesNo = Field(
        False,
        description="Serve every request without an API key, even if other machines can reach the server or keys "
        "exist.",
    )
    admin_key_file: Path | None = Field(
        None,
        description="File with the first admin key: 32 to 256 visible characters, such as from `openssl rand -hex 32`. If "
        "the store has no API key when the server starts, it creates this one. Later the file is ignored.",
    )
    metrics_open: YesNo | None = Field(
        None, description="Serve `/metrics` without an API key. Unset: only if no other request needs a key."
    )
    trusted_proxies: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(networks)] = Field(
        default_factory=list,
        description="Addresses and networks of proxies whose `X-Forwarded-For` header names the client in the log, in "
        "the audit trail and for the rate limit on wrong keys. Unset: the address of the connection counts.",
    )
    keys_refresh: Duration = Field(
        2 * US_PER_SECOND,
        description="How often a node reads API keys and sessions again, and so how long a revoked one still works. "
        "Lower values end access sooner and query the store more often.",
    )
    keys_expiry_notice: Duration = Field(
        14 * 86_400 * US_PER_SECOND,
        description="How long before an API key expires the log (once a day) and the metric `tocsin_api_keys_expiring` "
        "announce it. Higher values leave more time to replace the key.",
    )
    ui_origins: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(origins)] = Field(
        default_factory=list,
        description="Origins at which browsers reach the web pages besides the listening address, such as "
        "`https://tocsin.example` behind a proxy that terminates TLS. The pages answer under no other name.",
    )
    ui_session_idle_timeout: Duration = Field(
        seconds(UiLimits().session_idle_timeout_s),
        description="How long a session on the web pages lasts without a request. With lower values people sign in "
        "more often.",
    )
    ui_session_lifetime_max: Duration = Field(
        seconds(UiLimits().session_lifetime_max_s),
        description="How long a session on the web pages lasts at most, even if it is in use. With lower values people "
        "sign in again more often, and a copied cookie works for less time.",
    )
    ui_session_stale_max: Duration = Field(
        seconds(UiLimits().session_stale_max_s),
        description="How long a node accepts the sessions in its memory while it cannot read from the store whether "
        "they were ended. Higher values bridge longer outages; with lower values a session ended elsewhere works for "
        "less time.",
    )

    @property
    def keys_refresh_s(self) -> float:
        """`keys_refresh` in seconds."""
        return self.keys_refresh / US_PER_SECOND

    @property
    def keys_expiry_notice_s(self) -> float:
        """`keys_expiry_notice` in seconds."""
        return self.keys_expiry_notice / US_PER_SECOND

    def origin_hosts(self) -> list[str]:
        """The host names in `ui.origins`."""
        return [urlsplit(origin).hostname or "" for origin in self.ui_origins]


class Egress(Group):
    """Addresses that callbacks and service calls may reach."""

    title: ClassVar[str] = "Egress"
    intro: ClassVar[str] = "Which addresses the server may call, besides those on the public Internet."

    egress_allow: Annotated[list[str], NoDecode, BeforeValidator(words), AfterValidator(egress_entries)] = Field(
        default_factory=list,
        description="Addresses, networks and host names, each with or without a port, that callbacks and service "
        "calls may reach although they are not on the public Internet.",
    )
    egress_allow_private: YesNo | None = Field(
        None,
        description="Allow callbacks and service calls to every loopback, private and link-local address. Unset: only "
        "if `host` is a loopback address and requests need no key.",
    )
