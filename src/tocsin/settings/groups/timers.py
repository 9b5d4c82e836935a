"""Callbacks, memory and commits, what timers may ask for, and how long data is kept."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tocsin.http_client.limits import CallbackLimits
from tocsin.messaging.limits import BusLimits
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.namespace import RETENTION_DEFAULT_US
from tocsin.model.validation import InputLimits
from tocsin.service_calls.limits import AgentLimits
from tocsin.settings.groups.base import Group
from tocsin.settings.values import Bytes, Count, Duration, DurationOrZero
from tocsin.timers.engine.limits import EngineLimits

_ENGINE, _INPUT, _CALLBACKS = EngineLimits(), InputLimits(), CallbackLimits()


class Callbacks(Group):
    """How many callbacks are in flight, and the HTTP client that sends them."""

    title: ClassVar[str] = "Callbacks"
    intro: ClassVar[str] = "How many callbacks a node invokes at once, to whom, and over how many connections."

    callbacks_in_flight_max: Count = Field(
        _ENGINE.callbacks_in_flight_max,
        description="Callbacks in flight at once on a node; one namespace gets at most 80% of them. With higher "
        "values slow receivers delay others less, for more memory and connections (`callbacks.connections_max` must "
        "be higher). With lower values due timers wait in memory.",
    )
    destination_in_flight_max: Count = Field(
        _ENGINE.destination_in_flight_max,
        description="Callbacks in flight at once to one destination (scheme, host and port). Higher values put more "
        "load on each receiver; with lower values its due timers wait while others fire.",
    )
    callbacks_connections_max: Count = Field(
        _CALLBACKS.connections_max,
        description="Connections to the receivers of timers, all destinations together; idle ones are closed to make "
        "room. A timer that finds no free connection fires a little later, which does not count as an "
        "attempt. Higher values take more memory and file descriptors.",
    )
    callbacks_agent_connections_max: Count = Field(
        _CALLBACKS.agent_connections_max,
        description="Connections for service calls, separate from those of timers so that neither can exhaust the "
        "other's. Must be at least `agent.executions_in_flight_max`. Higher values keep more idle "
        "connections for later calls.",
    )
    callbacks_idle_timeout: Duration = Field(
        _CALLBACKS.idle_timeout_us,
        description="How long an idle connection to a receiver is kept open. Keep it below the receivers' own "
        "keep-alive timeout, so that no request meets a connection that is being closed; lower values open more "
        "connections.",
    )
    callbacks_response_body_bytes_max: Bytes = Field(
        _CALLBACKS.response_body_bytes_max,
        description="Bytes of a response's body that are read; a longer body is cut and its connection closed. Keep "
        "it above `payload_bytes_max`, for responses that reschedule. Higher values take more memory for each "
        "callback in flight.",
    )
    callbacks_dns_ttl: Duration = Field(
        _CALLBACKS.dns_ttl_us,
        description="How long a resolved address is used before the host name is resolved again. Higher values query "
        "DNS less; with lower values a host that moved is followed sooner.",
    )
    callbacks_dns_lookups_max: Count = Field(
        _CALLBACKS.dns_lookups_max,
        description="Host names being resolved at once. A request to a further one counts as not sent (RESOLVER_FULL) "
        "and is made again. Higher values help while many host names do not resolve, for more memory.",
    )


class MemoryAndThroughput(Group):
    """The window of timers in memory, and group commit."""

    title: ClassVar[str] = "Memory and throughput"
    intro: ClassVar[str] = (
        "How many timers a node holds in memory, and how it groups writes. [How to tune](../how-to/tune.md)."
    )

    window_timers_max: Count = Field(
        _ENGINE.window_timers_max,
        description="Timers that a node holds in memory before they are due, all shards together. Higher values take "
        "more memory and need fewer loads where very many timers are due soon.",
    )
    window_bytes_max: Bytes = Field(
        _ENGINE.window_bytes_max,
        description="Bytes of timers that a node holds in memory before they are due, all shards together. Whichever "
        "of this and `window_timers_max` is reached first applies.",
    )
    look_ahead_max: Duration = Field(
        _ENGINE.look_ahead_max_us,
        description="How far ahead timers are loaded into memory, as far as `window_timers_max` and "
        "`window_bytes_max` allow. Higher values make fewer, larger loads; lower values take less memory.",
    )
    load_page_rows: Count = Field(
        _ENGINE.load_page_rows,
        description="Timers that one query of a load returns. Higher values need fewer round trips, each of which "
        "takes longer.",
    )
    commit_interval: DurationOrZero = Field(
        _ENGINE.commit_interval_us,
        description="How long results of callbacks wait for a client's write to share a commit with. Higher values "
        "commit less often and repeat more callbacks after a crash; 0 commits at once.",
    )
    batch_bytes_max: Bytes = Field(
        _ENGINE.batch_bytes_max,
        description="Bytes of timers in one commit; more wait for the next. Higher values need more memory and larger "
        "transactions, which the database must accept.",
    )
    pending_writes_max: Count = Field(
        _ENGINE.pending_writes_max,
        description="Writes of clients that wait for a commit on a node; further ones are refused with OVERLOADED "
        "(429). With higher values clients wait longer before they are refused.",
    )
    uncommitted_results_max: Count = Field(
        _ENGINE.uncommitted_results_max,
        description="Results of callbacks that wait in memory while a store that belongs to this node alone accepts "
        "no writes, for example because the disk is full. At this limit, or at `window_bytes_max` of their timers, "
        "nothing fires until they are written. Higher values keep firing longer and repeat more callbacks after a "
        "crash.",
    )
    write_timeout: Duration = Field(
        _ENGINE.write_timeout_us,
        description="How long a client's write may wait; then it is answered 503 and never done. Give clients a "
        "longer timeout than this. Higher values return fewer 503 while shards move between nodes; with lower values "
        "clients learn of trouble sooner.",
    )
    store_timeout: Duration = Field(
        _ENGINE.store_timeout_us,
        description="How long a commit, claim or load may take before its outcome counts as unknown and the shard is "
        "claimed again. Must be longer than the store's own timeouts, such as `database.statement_timeout`.",
    )


class TimerLimits(Group):
    """What a timer may ask for."""

    title: ClassVar[str] = "Limits of a timer"
    intro: ClassVar[str] = "What a timer may ask for. A request beyond a limit is refused with an error that names it."

    payload_bytes_max: Bytes = Field(
        _INPUT.payload_bytes_max,
        description="Bytes of a timer's payload, in a request or in a response that reschedules. Higher values take "
        "more memory; keep `api.request_bytes_max`, `callbacks.response_body_bytes_max` and `ui.form_bytes_max` above "
        "them.",
    )
    payload_depth_max: Count = Field(
        _INPUT.payload_depth_max,
        description="Nesting depth of arrays and objects in a timer's payload. It protects the programs that parse the "
        "payload later. Higher values accept payloads that such programs may refuse.",
    )
    callback_timeout_max: Duration = Field(
        _INPUT.callback_timeout_max_us,
        description="Longest `callbackTimeoutSeconds` of a timer; must be shorter than `drain_timeout`. With higher "
        "values a receiver that hangs occupies a slot for longer.",
    )
    attempts_max: Count = Field(
        _INPUT.attempts_max,
        description="Highest `maxAttempts` of a retry policy. Lower values bound the load of retries.",
    )
    retry_duration_max: Duration = Field(
        _INPUT.retry_duration_max_us,
        description="Longest interval between attempts, and longest `maxAttemptsDuration`, of a retry policy. Lower "
        "values refuse policies that would retry for very long.",
    )
    retry_after_max: Duration = Field(
        _ENGINE.retry_after_max_us,
        description="Longest delay before the next attempt that a receiver's or service's `Retry-After` header can ask "
        "for; a longer one is cut to this. With lower values a receiver can postpone its timers less.",
    )
    execute_past_max: DurationOrZero = Field(
        _INPUT.execute_past_max_us,
        description="How far in the past `executeAt` may lie; such a timer is due at once. An earlier instant is "
        "refused as a mistake. The default, ten years, allows imports of old timers.",
    )
    execute_ahead_max: Duration = Field(
        _INPUT.execute_ahead_max_us,
        description="How far in the future an instant may lie, in a request or in a response that reschedules. Lower "
        "values catch instants in the wrong unit.",
    )
    list_rows_max: Count = Field(
        _INPUT.list_rows_max,
        description="Highest `limit` of a list request. Higher values allow larger responses, each of which takes "
        "more memory.",
    )


class Retention(Group):
    """How long finished work and its traces are kept."""

    title: ClassVar[str] = "Retention"
    intro: ClassVar[str] = (
        "How long finished timers, service calls and their traces are kept. Longer times take more disk."
    )

    history_retention: Duration = Field(
        RETENTION_DEFAULT_US,
        description="How long finished timers stay visible in namespaces created without a `retention` of their own.",
    )
    retention_max: Duration = Field(
        _INPUT.retention_max_us,
        description="Longest `retention` that a namespace can ask for its finished timers. Lower values bound the disk "
        "space that a namespace can ask for.",
    )
    purge_interval: Duration = Field(
        _ENGINE.purge_interval_us,
        description="How often finished timers are deleted after their retention. Higher values delete more at a "
        "time, less often.",
    )
    occurrences_kept: Count = Field(
        _ENGINE.occurrences_kept,
        description="Occurrences that the history of each schedule keeps, the newest ones, within the retention of its "
        "namespace. Each takes about 450 bytes of disk. Lower values show less of the past; up to a quarter more, at "
        "least 100, stay for a while.",
    )
    audit_retention: Duration = Field(
        90 * 86_400 * US_PER_SECOND, description="How long entries of the audit trail are kept."
    )
    agent_retention: Duration = Field(
        AgentLimits().retention_us, description="How long finished service calls are kept, with their executions."
    )
    agent_outbox_retention: Duration = Field(
        AgentLimits().outbox_retention_us,
        description="How long published messages of service calls are kept in the agent's database. Traces are built "
        "from them, and they may contain secrets.",
    )
    bus_nats_stream_age_max: Duration = Field(
        BusLimits().nats_stream_age_max_us,
        description="How long messages stay in the streams on NATS, handled or not. Higher values let others read "
        "further back, and keep any secrets in messages for longer.",
    )

    def retention_us(self) -> int:
        """Retention of a namespace created without one, microseconds."""
        return self.history_retention

    @property
    def audit_retention_s(self) -> float:
        """`audit_retention` in seconds."""
        return self.audit_retention / US_PER_SECOND
