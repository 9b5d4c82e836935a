"""The service agent's limits, by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Durations in microseconds (`_us`), sizes in bytes of UTF-8."""

    # Settings of the table `[agent]`. `tocsin.settings.groups` describes each under the same name.

    request_timeout_us: int = 30_000_000
    request_body_bytes_max: int = 102_400
    snippet_bytes_max: int = 4_096
    executions_in_flight_max: int = 2_048
    executions_per_destination_max: int = 512
    executions_max: int = 3
    #: Timers and service calls have one setting, `retry_after_max`.
    retry_after_max_us: int = 24 * 3_600_000_000
    polling_interval_us: int = 5_000_000
    polling_batch_max: int = 500
    watchdog_interval_us: int = 1_000_000
    watchdog_grace_us: int = 15_000_000
    start_timeout_us: int = 3_600_000_000
    outbox_retention_us: int = 86_400_000_000
    retention_us: int = 30 * 86_400_000_000

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Nesting depth of arrays and objects in a request's body; a deeper one is refused. It protects the parsers of
    #: services.
    request_body_depth_max: int = 100
    #: Headers of a response that are stored; further ones are left out.
    response_headers_max: int = 64
    #: Characters of a service call's name.
    name_chars_max: int = 200
    #: Characters of a service call's tag.
    tag_chars_max: int = 64
    #: Characters of a service call's idempotency key.
    idempotency_key_chars_max: int = 255
    #: Tags of a service call.
    tags_max: int = 16
    #: Service calls on one page of a list.
    page_max: int = 1_000
    #: How long the API waits for the agent to accept a command (submit, delete, tag) before it answers 503: as long as
    #: a client commonly waits.
    command_timeout_us: int = 10_000_000
    #: Messages that orchestration handles in one transaction.
    orchestration_batch_max: int = 1_000
    #: Due schedules that were read and are not yet published and recorded; bounds memory in a burst.
    polling_in_flight_max: int = 2_000
    #: Schedules due within this time of one another are published in one transaction: some later by as much, none
    #: earlier.
    polling_batch_delay_us: int = 5_000
    #: Stuck calls that the watchdog handles in one transaction.
    watchdog_batch_max: int = 500
    #: Messages of the outbox that are being published, or wait for it, in memory; further ones stay in the table.
    outbox_in_flight_max: int = 5_000
    #: Messages that one read of the outbox returns.
    outbox_batch_max: int = 500
    #: First pause after a failure to publish a message, or to write to the execution log; each further pause is twice
    #: as long.
    outbox_backoff_initial_us: int = 100_000
    #: Longest pause between attempts to publish a message, or to write to the execution log.
    outbox_backoff_max_us: int = 30_000_000
    #: How long publish acknowledgements gather before the outbox records them in one transaction. Messages whose
    #: acknowledgement is not recorded are published again after a crash.
    outbox_acknowledge_interval_us: int = 50_000
    #: How often the outbox is searched for messages whose commit had an unknown outcome.
    outbox_sweep_interval_us: int = 10_000_000
    #: How long a stop waits for messages that are being published.
    outbox_close_timeout_us: int = 1_000_000
    #: Rows that retention deletes from the agent's database in one transaction.
    purge_batch_max: int = 1_000
    #: How often retention deletes finished service calls and published messages.
    purge_interval_us: int = 60_000_000
