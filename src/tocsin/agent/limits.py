"""The agent's limits. Each is a setting of the table `[agent]`; `docs/reference/settings.md` describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Durations in microseconds, sizes in bytes of UTF-8."""

    #: How long a service may take to answer, name resolution and connection included.
    request_timeout_us: int = 30_000_000
    #: A request's body, as it is sent.
    request_body_bytes_max: int = 102_400
    #: Arrays and objects within one another in a request's body, which is read again wherever the call goes.
    request_body_depth_max: int = 100
    #: What is kept of a request's or an answer's body.
    snippet_bytes_max: int = 4_096
    #: Response headers beyond this are left out of what is kept.
    response_headers_max: int = 64
    #: Requests to services under way at once, in all and to one scheme, host and port.
    executions_in_flight_max: int = 2_048
    executions_per_destination_max: int = 512
    #: How often a call is executed when the process ends in the middle of it. 1: it fails then, with INTERRUPTED.
    executions_max: int = 3
    #: Characters of a name, of a tag, of an idempotency key; tags of a call.
    name_chars_max: int = 200
    tag_chars_max: int = 64
    idempotency_key_chars_max: int = 255
    tags_max: int = 16
    #: Records on a page of a list.
    page_max: int = 1_000
    #: How long the API waits for a command's reply.
    command_timeout_us: int = 10_000_000
    #: Messages that orchestration deals with in one transaction.
    orchestration_batch_max: int = 1_000
    #: The timer's worker looks for due schedules at least this often, and this many at a time.
    polling_interval_us: int = 5_000_000
    polling_batch_max: int = 500
    #: Schedules that were found and are not yet told and marked.
    polling_in_flight_max: int = 2_000
    #: What falls due within this time is told together: a schedule may be told later by it, never earlier.
    polling_gather_us: int = 5_000
    #: The watchdog's interval, calls it looks at in one transaction, and how far behind a call may be before it acts.
    watchdog_interval_us: int = 1_000_000
    watchdog_batch_max: int = 500
    watchdog_grace_us: int = 15_000_000
    #: A call whose execution has been ordered and never began for this long fails.
    start_timeout_us: int = 3_600_000_000
    #: Outbox rows sent and not yet taken; rows read at once; the first and the longest pause after a failure.
    outbox_in_flight_max: int = 5_000
    outbox_batch_max: int = 500
    outbox_backoff_initial_us: int = 100_000
    outbox_backoff_max_us: int = 30_000_000
    #: How long rows that were taken gather before they are marked; how often the table is searched for rows of which
    #: nobody was told (a commit whose outcome stayed unknown); how long a stop waits for what is under way.
    outbox_mark_interval_us: int = 50_000
    outbox_sweep_interval_us: int = 10_000_000
    outbox_close_timeout_us: int = 1_000_000
    #: How long published outbox rows are kept: traces are made from them.
    outbox_retention_us: int = 86_400_000_000
    #: How long finished calls are kept.
    retention_us: int = 30 * 86_400_000_000
    #: Rows that one purge removes in a transaction, and the pause between purges.
    purge_batch_max: int = 1_000
    purge_interval_us: int = 60_000_000
