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
    #: Executions at once, from the moment in which their beginning is logged until their end has been.
    executions_in_flight_max: int = 2_048
    #: Of these, those to one scheme, host and port that have not been answered.
    executions_per_destination_max: int = 512
    #: How often a call is executed when the process ends in the middle of it, before that counts as a failed attempt
    #: (INTERRUPTED). Without a retry policy the call fails then; 1: at the first time.
    executions_max: int = 3
    #: Greatest delay that Retry-After can ask for before the next attempt of a call with a retry policy.
    retry_after_max_us: int = 24 * 3_600_000_000
    #: Characters of a call's name.
    name_chars_max: int = 200
    #: Characters of a tag.
    tag_chars_max: int = 64
    #: Characters of an idempotency key.
    idempotency_key_chars_max: int = 255
    #: Tags of a call.
    tags_max: int = 16
    #: Records on a page of a list.
    page_max: int = 1_000
    #: How long the API waits for a command's reply.
    command_timeout_us: int = 10_000_000
    #: Messages that orchestration deals with in one transaction.
    orchestration_batch_max: int = 1_000
    #: The timer's worker looks for due schedules when the next one is due, and at least this often.
    polling_interval_us: int = 5_000_000
    #: Schedules that one look finds.
    polling_batch_max: int = 500
    #: Schedules that were found and are not yet told and marked.
    polling_in_flight_max: int = 2_000
    #: What falls due within this time is told together: a schedule may be told later by it, never earlier.
    polling_gather_us: int = 5_000
    #: How often the watchdog looks for calls that nobody tells anything of.
    watchdog_interval_us: int = 1_000_000
    #: Calls that it deals with in one transaction.
    watchdog_batch_max: int = 500
    #: How far behind a call may be before it acts.
    watchdog_grace_us: int = 15_000_000
    #: An execution that hasn't begun this long after it was ordered isn't begun any more: its call fails. Also the longest
    #: pause between two questions of the watchdog about one call.
    start_timeout_us: int = 3_600_000_000
    #: Outbox rows that are sent, or wait to be, and not yet marked as published.
    outbox_in_flight_max: int = 5_000
    #: Rows that are read at once.
    outbox_batch_max: int = 500
    #: The first pause after a failure to publish, or to write to the execution log; each is twice the one before.
    outbox_backoff_initial_us: int = 100_000
    #: The longest such pause.
    outbox_backoff_max_us: int = 30_000_000
    #: How long rows that were taken gather before they are marked.
    outbox_mark_interval_us: int = 50_000
    #: How often the table is searched for rows of which nobody was told: a commit whose outcome stayed unknown.
    outbox_sweep_interval_us: int = 10_000_000
    #: How long a stop waits for messages under way.
    outbox_close_timeout_us: int = 1_000_000
    #: How long published outbox rows are kept: traces are made from them.
    outbox_retention_us: int = 86_400_000_000
    #: How long finished calls are kept.
    retention_us: int = 30 * 86_400_000_000
    #: Rows that retention removes in one transaction.
    purge_batch_max: int = 1_000
    #: How often it does.
    purge_interval_us: int = 60_000_000
