"""Drivers that a plain install lacks. Each is an extra of the package; a missing one is named before anything is opened."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from urllib.parse import urlsplit

from tocsin.model.errors import ConfigError
from tocsin.settings import Settings

#: What an extra of `pyproject.toml` installs, as modules that Tocsin imports.
MODULES = {
    "postgresql": ("asyncpg",),
    "mysql": ("asyncmy",),
    "dynamodb": ("aiobotocore", "aiohttp"),
    "cassandra": ("cassandra",),
    "mongodb": ("pymongo",),
    "nats": ("nats",),
    "mcp": ("mcp", "mcp_types"),
    "oidc": ("authlib", "httpx2", "joserfc"),
    "ical": ("recurring_ical_events",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}
#: Schemes of URLs whose extra has another name.
_EXTRAS = {"postgres": "postgresql", "mongodb+srv": "mongodb"}


def require_extras(settings: Settings) -> None:
    """Raises ConfigError if these settings name a store, a broker, a collector or MCP, whose extra is not installed."""
    require_driver(settings.store_url(), "store")
    if settings.has_agent():
        require_driver(settings.agent_database_url(), "agent.database")
        if settings.broker is not None:
            require_extra("nats", "broker")
    if settings.nats_url is not None:
        require_extra("nats", "nats_url")
    if settings.mcp.enabled:
        require_extra("mcp", "mcp.enabled")
    if settings.oidc.issuer is not None:
        require_extra("oidc", "oidc.issuer")
    if settings.inbox.url is not None:
        require_driver(settings.inbox.url, "inbox.url")
    if settings.tracing.endpoint is not None:
        require_extra("otel", "tracing.endpoint")
    if settings.audit_export.endpoint is not None:
        require_extra("otel", "audit_export.endpoint")


def require_driver(url: str, setting: str) -> None:
    """Raises ConfigError if the driver of a database's URL is an extra that is not installed."""
    scheme = urlsplit(url).scheme
    if (extra := _EXTRAS.get(scheme, scheme)) in MODULES:
        require_extra(extra, setting)


def is_installed(extra: str) -> bool:
    """Whether what an extra installs is there."""
    return all(find_spec(module) is not None for module in MODULES[extra])


def require_extra(extra: str, setting: str) -> None:
    """Raises ConfigError with the command that installs an extra if it is not installed. `setting` is what requires it."""
    for module in MODULES[extra]:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                # The driver is there, and what it imports itself is not.
                raise
            raise ConfigError(f"{setting}: {module} is not installed; run: pip install 'tocsin[{extra}]'") from error
