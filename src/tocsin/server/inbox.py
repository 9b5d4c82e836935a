"""The inbox of a node, and its table for commands."""

from __future__ import annotations

from urllib.parse import urlsplit

from tocsin.inbox.inbox import Inbox
from tocsin.inbox.reading import RowReader
from tocsin.model.errors import ConfigError
from tocsin.model.validation import InputRules
from tocsin.ports.inbox import InboxTable
from tocsin.server.access import Access
from tocsin.server.engine import Engine, NodeParts
from tocsin.server.extras import require_driver
from tocsin.settings import Settings
from tocsin.telemetry.clock import SystemClock
from tocsin.web.http.convert import RequestParser


def inbox_table(settings: Settings) -> InboxTable:
    """The table, with no session yet. Raises ConfigError if there is no inbox, for a URL that is not valid, and for a driver
    that is not installed."""
    options = settings.inbox
    if options.url is None:
        raise ConfigError(
            "inbox.url: is missing; name the database with the table, as postgresql://… or mysql://…, in the settings file "
            "or as TOCSIN_INBOX_URL"
        )
    require_driver(options.url, "inbox.url")
    # Only the driver in use is imported.
    if urlsplit(options.url).scheme == "postgresql":
        from tocsin.stores.inbox.postgresql import PostgresInboxTable

        return PostgresInboxTable(options.url, options.table, settings.database)
    from tocsin.stores.inbox.mysql import MysqlInboxTable

    return MysqlInboxTable(options.url, options.table, settings.database)


def start_inbox(parts: NodeParts, engine: Engine, access: Access, rules: InputRules) -> Inbox | None:
    """The inbox, draining wherever this node owns the first shard; None where none is set. Its database may be away. Raises
    ConfigError."""
    settings = parts.settings
    if settings.inbox.url is None:
        return None
    inbox = Inbox(
        inbox_table(settings),
        engine.service,
        RowReader(RequestParser(rules), settings.inbox.namespaces, settings.api.request_bytes_max),
        settings.inbox,
        # Not that of `tocsin dev`: programs write rows by the machine's.
        clock=SystemClock(),
        audit=access.audit,
        observe=parts.observers.observe,
        acts_for_all=engine.supervisor.acts_for_all,
        fatal=parts.on_fatal,
        export=access.export,
    )
    parts.observers.gauges.add(inbox.gauges)
    parts.ends.push_async_callback(inbox.close)
    inbox.start()
    return inbox
