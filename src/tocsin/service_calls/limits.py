"""The service agent's limits, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import Topic, setting
from tocsin.model.setting_values import namespace_name


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Durations in microseconds (`_us`), sizes in bytes of UTF-8."""

    retention_us: int = setting(
        30 * 86_400_000_000,
        "How long finished service calls are kept, with their executions.",
        topic=Topic.RETENTION,
    )
    outbox_retention_us: int = setting(
        86_400_000_000,
        "How long published and suspended messages of service calls are kept in the agent's database. Traces are built "
        "from them, and they may contain secrets.",
        topic=Topic.RETENTION,
    )
    request_timeout_us: int = setting(
        30_000_000,
        "How long a service may take to respond, with name resolution and connecting. With higher values slow "
        "services succeed and occupy their slot for longer.",
    )
    request_body_bytes_max: int = setting(
        102_400,
        "Bytes of a service call's request body; a larger one is refused. A broker must accept messages of this size. "
        "Higher values take more memory and a larger database.",
    )
    executions_in_flight_max: int = setting(
        2_048,
        "Executions of service calls at once, all services together; more wait. Higher values take more memory and "
        "connections (`callbacks.agent_connections_max`).",
    )
    executions_per_destination_max: int = setting(
        512,
        "Executions of service calls at once to one scheme, host and port. With lower values a slow service occupies "
        "fewer of `agent.executions_in_flight_max`.",
    )
    executions_max: int = setting(
        3,
        "How often one attempt of a call is executed if the process ends in the middle of it; then the attempt fails "
        "(INTERRUPTED). Without a retry policy the call fails then: with 1, no request is ever sent twice. Higher "
        "values survive more crashes, and may send a request more often.",
    )
    snippet_bytes_max: int = setting(
        4_096,
        "Bytes of a response's body, and of a request's in the execution log, that are stored. Higher values make a "
        "larger database.",
    )
    start_timeout_us: int = setting(
        3_600_000_000,
        "How late an execution may begin after it was ordered; later the attempt fails without being sent. Also the "
        "longest pause between two checks of one call by the watchdog. Lower values fail attempts sooner during an "
        "overload.",
    )
    polling_interval_us: int = setting(
        5_000_000,
        "Longest time between two reads of due calls; the next known due time wakes the agent sooner. Lower values "
        "notice calls that another node wrote sooner, for more queries. Alias, in milliseconds: "
        "`TIMER_POLLING_INTERVAL`.",
    )
    polling_batch_max: int = setting(
        500,
        "Due calls that one read returns. Higher values need fewer reads in a burst, each of which takes longer. "
        "Alias: `TIMER_BATCH_SIZE`.",
    )
    watchdog_interval_us: int = setting(
        1_000_000,
        "How often the watchdog searches for stuck calls. Higher values query the agent's database less often.",
    )
    watchdog_grace_us: int = setting(
        15_000_000,
        "How far behind a call must be before the watchdog acts. Lower values repair a lost message sooner; if too "
        "low, the watchdog acts on calls that are merely slow.",
    )

    flow_namespace: str = setting(
        "default",
        "The namespace whose flows and limits apply to service calls that name a `flowKey`, together with its timers. Nodes "
        "that may run the agent need the same one.",
        rule=namespace_name,
    )

    credentials_namespace: str = setting(
        "default",
        "The namespace whose credentials service calls may name. A client needs a key that may write in it, besides that for "
        "the tenant. Nodes that may run the agent need the same one.",
        rule=namespace_name,
    )

    # Filled by the settings of other parts (`tocsin.settings.settings.SHARED`).

    retry_after_max_us: int = 24 * 3_600_000_000

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Orders that wait for a slot of their destination in memory and are not acknowledged, about. They take room of
    #: `outbox_in_flight_max` and `bus.nats_ack_pending_max`, and all together must leave some.
    orders_deferred_max: int = 1_500
    #: Orders that wait in the agent's table and are in memory, all places together; the others are in the agent's table only.
    suspended_orders_max: int = 1_000
    #: Flow keys that are known while orders wait for them; those beyond are looked for periodically.
    flow_keys_max: int = 10_000
    #: How often the table is searched for flow keys that are not known.
    flow_round_interval_us: int = 5_000_000
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
