"""The service agent: its calls, its messages and its database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin.messaging.limits import BusLimits
from tocsin.service_calls.limits import AgentLimits
from tocsin.settings.groups.base import Group
from tocsin.settings.values import (
    AgentTimer,
    Bytes,
    Count,
    Duration,
    YesNo,
    broker_address,
    database_address,
    milliseconds,
    one_of,
    seconds,
    subject_prefix,
)
from tocsin.stores.service_calls.settings import SqlSettings

_AGENT, _BUS, _SQL = AgentLimits(), BusLimits(), SqlSettings()


class ServiceCalls(Group):
    """The service agent and its calls."""

    title: ClassVar[str] = "Service calls"
    intro: ClassVar[str] = (
        "Whether the service agent runs, and how it executes calls. [The service agent](../explanation/service-agent.md)."
    )

    agent_enabled: YesNo | None = Field(
        None,
        description="Run the service agent beside the timer service. Unset: yes, except with a MySQL or DynamoDB "
        "`store` and no `agent.database`, because a file of each node's own would hide calls from the other nodes.",
    )
    agent_database: Annotated[str, BeforeValidator(database_address)] | None = Field(
        None,
        description="Where service calls are stored: a path or `sqlite:///path`, or `postgresql://…`. Unset: "
        "`agent.db` in `data_dir`; with a PostgreSQL `store`, that database. Aliases for a file: `TIMER_DB_PATH`, "
        "`DB_PATH`.",
    )
    agent_database_file: Path | None = Field(
        None, description="File with the value of `agent.database`, for a URL with a password."
    )
    agent_timer: Annotated[AgentTimer, BeforeValidator(partial(one_of, ("polling", "engine")))] = Field(
        "polling",
        description="Where due times of service calls are kept: `polling`, in a table of the agent; `engine`, as "
        "timers of this node's store. Choose `engine` for very many waiting calls.",
    )
    agent_request_timeout: Duration = Field(
        _AGENT.request_timeout_us,
        description="How long a service may take to respond, with name resolution and connecting. With higher values "
        "slow services succeed and occupy their slot for longer.",
    )
    agent_request_body_bytes_max: Bytes = Field(
        _AGENT.request_body_bytes_max,
        description="Bytes of a service call's request body; a larger one is refused. A broker must accept messages of "
        "this size. Higher values take more memory and a larger database.",
    )
    agent_executions_in_flight_max: Count = Field(
        _AGENT.executions_in_flight_max,
        description="Executions of service calls at once, all services together; more wait. Higher values take more "
        "memory and connections (`callbacks.agent_connections_max`).",
    )
    agent_executions_per_destination_max: Count = Field(
        _AGENT.executions_per_destination_max,
        description="Executions of service calls at once to one scheme, host and port. With lower values a slow "
        "service occupies fewer of `agent.executions_in_flight_max`.",
    )
    agent_executions_max: Count = Field(
        _AGENT.executions_max,
        description="How often one attempt of a call is executed if the process ends in the middle of it; then the "
        "attempt fails (INTERRUPTED). Without a retry policy the call fails then: with 1, no request is ever "
        "sent twice. Higher values survive more crashes, and may send a request more often.",
    )
    agent_snippet_bytes_max: Bytes = Field(
        _AGENT.snippet_bytes_max,
        description="Bytes of a response's body, and of a request's in the execution log, that are stored. Higher "
        "values make a larger database.",
    )
    agent_start_timeout: Duration = Field(
        _AGENT.start_timeout_us,
        description="How late an execution may begin after it was ordered; later the attempt fails without being "
        "sent. Also the longest pause between two checks of one call by the watchdog. Lower values fail attempts "
        "sooner during an overload.",
    )
    agent_polling_interval: Duration = Field(
        _AGENT.polling_interval_us,
        description="Longest time between two reads of due calls; the next known due time wakes the agent sooner. "
        "Lower values notice calls that another node wrote sooner, for more queries. Alias, in milliseconds: "
        "`TIMER_POLLING_INTERVAL`.",
    )
    agent_polling_batch_max: Count = Field(
        _AGENT.polling_batch_max,
        description="Due calls that one read returns. Higher values need fewer reads in a burst, each of which takes "
        "longer. Alias: `TIMER_BATCH_SIZE`.",
    )
    agent_watchdog_interval: Duration = Field(
        _AGENT.watchdog_interval_us,
        description="How often the watchdog searches for stuck calls. Higher values query the agent's database less "
        "often.",
    )
    agent_watchdog_grace: Duration = Field(
        _AGENT.watchdog_grace_us,
        description="How far behind a call must be before the watchdog acts. Lower values repair a lost message "
        "sooner; if too low, the watchdog acts on calls that are merely slow.",
    )


class Messaging(Group):
    """The bus between the agent's modules."""

    title: ClassVar[str] = "Messaging of service calls"
    intro: ClassVar[str] = "How the agent's modules exchange messages: in the process, or [on NATS](../how-to/nats.md)."

    broker: Annotated[str | None, BeforeValidator(broker_address)] = Field(
        None,
        description="Message broker of the service agent: `nats://host:port` for NATS JetStream. Unset: messages stay "
        "in the process. Alias: `TIMER_BROKER_URL`.",
    )
    broker_file: Path | None = Field(
        None, description="File with the value of `broker`, for a URL with a password or token."
    )
    broker_prefix: Annotated[str, BeforeValidator(subject_prefix)] = Field(
        "svc",
        description="First token of the agent's subjects on the broker. Each agent that shares a broker needs its own.",
    )
    bus_deliveries_max: Count = Field(
        _BUS.deliveries_max,
        description="Failed deliveries after which a message becomes a dead letter. Failures that affect every message, "
        "such as an unreachable database, do not count. Higher values repeat failing messages for longer.",
    )
    bus_queue_max: Count = Field(
        _BUS.queue_max,
        description="Messages on the bus that are not yet published or handled; further ones are refused and stay in "
        "the outbox. Higher values take more memory.",
    )
    bus_nats_connect_timeout: Duration = Field(
        _BUS.nats_connect_timeout_us,
        description="How long one attempt to connect to NATS may take, with the setup of its streams. With lower values "
        "the next attempt begins sooner.",
    )
    bus_nats_publish_timeout: Duration = Field(
        _BUS.nats_publish_timeout_us,
        description="How long NATS may take to acknowledge a published message before it is published again. Lower "
        "values publish more duplicates, which handlers drop.",
    )
    bus_nats_ack_wait: Duration = Field(
        _BUS.nats_ack_wait_us,
        description="How long NATS waits for the acknowledgement of a delivered message, or a sign of progress, "
        "before it delivers the message again. Lower values move the messages of a failed node to another sooner.",
    )
    bus_nats_ack_pending_max: Count = Field(
        _BUS.nats_ack_pending_max,
        description="Messages that NATS delivers to one subscription before they are acknowledged. Higher values keep "
        "more messages in memory.",
    )
    bus_nats_replicas: Count = Field(
        _BUS.nats_replicas,
        description="Replicas of the streams in a NATS cluster, at most as many as there are servers. With higher "
        "values servers may fail without loss, for slower publishing.",
    )


class AgentDatabase(Group):
    """The agent's connections to its database, and its lock and leader lease."""

    title: ClassVar[str] = "Database of service calls"
    intro: ClassVar[str] = (
        "How the agent uses its database. `sqlite.synchronous` and `sqlite.busy_timeout` apply to its SQLite file too."
    )

    agent_sql_connections_max: Count = Field(
        _SQL.connections_max,
        description="Connections of the agent to PostgreSQL, besides the one that holds its lock. Higher values "
        "handle more messages at once.",
    )
    agent_sql_statement_timeout: Duration = Field(
        milliseconds(_SQL.statement_timeout_ms),
        description="How long a statement of the agent may run before PostgreSQL cancels it. Lower values free the "
        "connection of a stuck statement sooner; if too low, slow statements fail.",
    )
    agent_sql_lock_wait: Duration = Field(
        seconds(_SQL.lock_wait_s),
        description="How long a start waits for another agent to release the database. Then it stands by, or fails where "
        "it cannot stand by. Higher values let a restart overlap its predecessor's end for longer.",
    )
    agent_sql_leader_lease: Duration = Field(
        seconds(_SQL.leader_lease_s),
        description="How long the agent on PostgreSQL may make no progress before another node takes over. Lower "
        "values take over sooner; if too low, a pause counts as a failure.",
    )
