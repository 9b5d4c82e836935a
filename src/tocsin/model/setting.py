"""How the dataclass of a part declares which of its fields operators can set.

`tocsin.settings.settings.Settings` holds these dataclasses and makes of each such field a setting, with a name in the
environment and in the settings file. A field without a declaration is a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

#: The key of a declaration in the metadata of a dataclass's field.
KEY = "setting"


class Topic(Enum):
    """A question that an operator has: the heading on the reference page, in `tocsin config show` and in the example file,
    and a sentence below it, which may link to other pages of the documentation. Listed in this order."""

    SERVER = (
        "Server and storage",
        "Where the server listens, where it keeps timers, and how many processes and shards it has.",
    )
    SECURITY = "Security", "Who may use the server. [How to secure a server](../how-to/secure.md)."
    EGRESS = "Egress", "Which addresses the server may call, besides those on the public Internet."
    LOGGING = "Logging and shutdown", "What the server logs and counts, and how long it takes to stop."
    TRACING = (
        "Tracing",
        "Where spans of creates, callbacks and service calls go. [How to trace](../how-to/trace.md).",
    )
    CALLBACKS = "Callbacks", "How many callbacks a node invokes at once, to whom, and over how many connections."
    MEMORY = (
        "Memory and throughput",
        "How many timers a node holds in memory, and how it groups writes. [How to tune](../how-to/tune.md).",
    )
    TIMER = (
        "Limits of a timer",
        "What a timer may ask for. A request beyond a limit is refused with an error that names it.",
    )
    RETENTION = (
        "Retention",
        "How long finished timers, service calls and their traces are kept. Longer times take more disk.",
    )
    REQUESTS = (
        "Client requests",
        "How many connections clients may have, and how large and slow their requests may be.",
    )
    CLUSTER = (
        "Several nodes",
        "How nodes find one another, and how soon they take over. [How to run several](../how-to/several-nodes.md).",
    )
    SQLITE = "SQLite", "How the file of a `sqlite:///` store is written."
    DATABASE = (
        "Database server",
        "How a node uses [PostgreSQL](../how-to/postgresql.md), or [MySQL or MariaDB](../how-to/mysql.md), as its store.",
    )
    DYNAMODB = "DynamoDB", "How a node uses [DynamoDB](../how-to/dynamodb.md) as its store."
    CASSANDRA = "Cassandra", "How a node uses [Cassandra](../how-to/cassandra.md) as its store."
    MONGODB = "MongoDB", "How a node uses [MongoDB](../how-to/mongodb.md) as its store."
    INBOX = (
        "Inbox",
        "The table in a database of yours, whose rows become timers. [How to use an inbox](../how-to/inbox.md).",
    )
    CALLS = (
        "Service calls",
        "Whether the service agent runs, and how it executes calls. [The service agent](../explanation/service-agent.md).",
    )
    MESSAGES = (
        "Messaging of service calls",
        "How the agent's modules exchange messages: in the process, or [on NATS](../how-to/nats.md).",
    )
    CALL_DATABASE = (
        "Database of service calls",
        "How the agent uses its database. `sqlite.synchronous` and `sqlite.busy_timeout` apply to its SQLite file too.",
    )
    MCP = "MCP", "Whether the server has tools for the Model Context Protocol. [How to use them](../how-to/mcp.md)."
    PAGES = "Web pages", "What the web pages show and accept."

    @property
    def title(self) -> str:
        """The heading."""
        return self.value[0]

    @property
    def intro(self) -> str:
        """The sentence below the heading."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a field declares as a setting.

    `description` states what the setting controls, in which unit, and what higher and lower values do. `topic`: unless that
    of the dataclass. `name`: unless that of the field without its unit. `least` bounds a number or duration. `choices` are
    the words that a text can be. `rule` turns what people write into the value, where the default's type and the unit in
    the field's name do not suffice; it raises ValueError with the rest of a sentence that begins with the value.
    """

    description: str
    topic: Topic | None = None
    name: str = ""
    least: int = 1
    choices: tuple[str, ...] = ()
    rule: Callable[[object], object] | None = None


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting as people read it: `value` with its unit and without secrets, `source` the flag, the variable, or the file
    and line that set it; empty for a default."""

    name: str
    variable: str
    topic: Topic
    value: str
    source: str
    description: str


def setting(default: T, description: str, **more: Any) -> T:
    """The default of a dataclass's field that operators can set; `more` are parts of its Declaration.

    The field's name ends in the unit of a duration (`_us`, `_ms` or `_s`), and has the word `bytes` if it counts bytes."""
    return field(default=default, metadata={KEY: Declaration(description, **more)})
