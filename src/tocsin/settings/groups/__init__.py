"""The settings, grouped by the question that an operator has. `GROUPS` is their order wherever they are listed."""

from tocsin.settings.groups.access import Egress, Security
from tocsin.settings.groups.agent import AgentDatabase, Messaging, ServiceCalls
from tocsin.settings.groups.base import Group
from tocsin.settings.groups.cluster import Cluster
from tocsin.settings.groups.databases import DatabaseServer, Dynamodb, Sqlite
from tocsin.settings.groups.http import Requests, WebPages
from tocsin.settings.groups.server import LoggingAndShutdown, Server
from tocsin.settings.groups.timers import Callbacks, MemoryAndThroughput, Retention, TimerLimits

GROUPS: tuple[type[Group], ...] = (
    Server,
    Security,
    Egress,
    LoggingAndShutdown,
    Callbacks,
    MemoryAndThroughput,
    TimerLimits,
    Retention,
    Requests,
    Cluster,
    Sqlite,
    DatabaseServer,
    Dynamodb,
    ServiceCalls,
    Messaging,
    AgentDatabase,
    WebPages,
)

__all__ = [
    "GROUPS",
    "AgentDatabase",
    "Callbacks",
    "Cluster",
    "DatabaseServer",
    "Dynamodb",
    "Egress",
    "Group",
    "LoggingAndShutdown",
    "MemoryAndThroughput",
    "Messaging",
    "Requests",
    "Retention",
    "Security",
    "Server",
    "ServiceCalls",
    "Sqlite",
    "TimerLimits",
    "WebPages",
]
