"""The agent's limits. Each is a setting of the table `[agent]`; `docs/reference/settings.md` describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Durations in microseconds, sizes in bytes of UTF-8."""

    #: How long a service may take to respond, name resolution and connection included. Raised: slow services succeed,
    #: and keep their slot for longer.
    request_timeout_us: int = 30_000_000
    #: Bytes of a service call's request body; a larger one is refused.
    request_body_bytes_max: int = 102_400
    #: Arrays and objects within one another in a request's body; a deeper one is refused.
    request_body_depth_max: int = 100
    #: Bytes of a response's body, and of a request's in the log of executions, that are kept. Raised: a larger
    #: database.
    snippet_bytes_max: int = 4_096
    #: Headers of a response that are kept; those beyond it are left out.
    response_headers_max: int = 64
    #: Executions at once, all services together; more wait for their turn. Raised: more connections
    #: (`callbacks.agent_connections_max`) and memory.
    executions_in_flight_max: int = 2_048
    #: Executions at once to one scheme, host and port. Lowered: a slow service takes fewer of
    #: `agent.executions_in_flight_max`.
    executions_per_destination_max: int = 512
    #: How often a call is executed when the process ends in the middle of it. 1: it fails then, with INTERRUPTED.
    executions_max: int = 3
    #: Characters of a service call's name.
    name_chars_max: int = 200
    #: Characters of a service call's tag.
    tag_chars_max: int = 64
    #: Characters of a service call's idempotency key.
    idempotency_key_chars_max: int = 255
    #: Tags of a service call; more are refused.
    tags_max: int = 16
    #: Service calls on one page of a list by the API.
    page_max: int = 1_000
    #: How long the API waits for the agent to take a command (submit, delete, tag) before it answers 503.
    command_timeout_us: int = 10_000_000
    #: Messages that orchestration handles in one transaction. Raised: more throughput, in longer transactions.
    orchestration_batch_max: int = 1_000
    #: Longest pause between two reads of due schedules; the next one that is known wakes the timer sooner. Lowered:
    #: more queries; a schedule that another node wrote is noticed sooner. Alias: `TIMER_POLLING_INTERVAL`, in
    #: milliseconds.
    polling_interval_us: int = 5_000_000
    #: Schedules that one read of due ones returns. Raised: fewer reads in a burst, each larger. Alias:
    #: `TIMER_BATCH_SIZE`.
    polling_batch_max: int = 500
    #: Schedules that were read as due and not yet published and marked. Raised: more memory in a burst.
    polling_in_flight_max: int = 2_000
    #: Schedules due within this time of one another are published together: one may be published later by as much,
    #: never earlier. Raised: fewer transactions.
    polling_gather_us: int = 5_000
    #: How often the watchdog looks for calls that got stuck.
    watchdog_interval_us: int = 1_000_000
    #: Stuck calls that the watchdog handles in one transaction.
    watchdog_batch_max: int = 500
    #: How far behind a call may be before the watchdog acts. Lowered: a lost message is made good sooner; too low, and
    #: it acts on calls that are only slow.
    watchdog_grace_us: int = 15_000_000
    #: An execution that hasn't begun this long after it was ordered isn't begun any more: its call fails. Also the longest
    #: pause between two questions of the watchdog about one call.
    start_timeout_us: int = 3_600_000_000
    #: Messages of the outbox that are being published, or wait to be, in memory. Beyond it they are read from the
    #: table later.
    outbox_in_flight_max: int = 5_000
    #: Messages that are read from the outbox at once.
    outbox_batch_max: int = 500
    #: First pause after a failure to publish a message, or to write to the execution log; each further pause is twice
    #: as long.
    outbox_backoff_initial_us: int = 100_000
    #: Longest pause between tries to publish a message, or to write to the execution log. Lowered: back sooner after a
    #: broker's outage.
    outbox_backoff_max_us: int = 30_000_000
    #: How long published messages gather before they are marked as published. Raised: fewer transactions, and more
    #: duplicates after a crash.
    outbox_mark_interval_us: int = 50_000
    #: How often the outbox is searched for messages whose commit had an unknown outcome.
    outbox_sweep_interval_us: int = 10_000_000
    #: How long a stop waits for messages that are being published.
    outbox_close_timeout_us: int = 1_000_000
    #: How long published messages are kept. Traces are made from them, and they may hold secrets; lowered: a smaller
    #: database.
    outbox_retention_us: int = 86_400_000_000
    #: How long finished service calls are kept, with their executions.
    retention_us: int = 30 * 86_400_000_000
    #: Rows that retention removes from the agent's database in one transaction.
    purge_batch_max: int = 1_000
    #: How often retention removes finished service calls and published messages.
    purge_interval_us: int = 60_000_000
