"""The settings, grouped by the question that an operator has. `GROUPS` is their order wherever they are listed."""

from tocsin.config.groups.access import Egress, Security
from tocsin.config.groups.agent import AgentDatabase, Messaging, ServiceCalls
from tocsin.config.groups.base import Group
from tocsin.config.groups.cluster import Cluster
from tocsin.config.groups.databases import DatabaseServer, Sqlite
from tocsin.config.groups.http import Requests, WebPages
from tocsin.config.groups.server import LoggingAndShutdown, Server
from tocsin.config.groups.timers import Callbacks, MemoryAndThroughput, Retention, TimerLimits

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
