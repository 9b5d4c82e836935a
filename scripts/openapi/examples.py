"""Examples of responses for the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.model.access import Role
from tocsin.model.credential_type import ClientAuth, CredentialType
from tocsin.model.explanation import TimerState, WaitsFor
from tocsin.model.failure_groups import FailedKind
from tocsin.model.job import JobAction, JobKind, JobState
from tocsin.model.monitor import MonitorStatus
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.period import PeriodStatus
from tocsin.model.run import RunStatus
from tocsin.model.schedule import CatchUp, OnSkipped, ScheduleStatus, Source
from tocsin.model.timer import Status
from tocsin.service_calls.messages import CallStatus
from tocsin.timers.engine.breaker import BreakerState
from tocsin.web.http import (
    administration,
    agent_wire,
    calendars,
    cluster,
    credentials,
    destinations,
    failures,
    flows,
    inbox,
    jobs,
    monitor_wire,
    schedule_wire,
    statistics,
    wire,
)

Json = dict[str, Any]

CREATED = "2027-01-30T12:00:00Z"
_AT = "2027-01-31T12:00:00Z"
_FINISHED = "2027-01-31T12:00:00.087500Z"
CORRELATION_ID = "01890a5d-ac96-774b-bcce-b302099a8060"
_TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
_CALL = "01890a5d-ac96-774b-bcce-b302099a8058"
_EXECUTION = "01890a5d-b1c2-7d3e-8f40-5a6b7c8d9e0f"

_ATTEMPT = wire.Attempt(_AT, 12.4, 503, "HTTP_503", "upstream not ready")
_TIMER = wire.Timer(
    namespace="default",
    id="order-17-reminder",
    timer_uuid="3c2a9a3e-6f0a-5a3b-9d55-0f5f6d1c2b7e",
    shard_id=3,
    status=Status.PENDING,
    execute_at=_AT,
    callback_url="https://shop.example/hooks/reminder",
    method="POST",
    headers={"x-shop": "eu"},
    payload=msgspec.Raw(b'{"order":17}'),
    callback_timeout_seconds=10,
    tags=["orders", "eu"],
    attempts=1,
    attempt_log=[_ATTEMPT],
    created_at=CREATED,
    updated_at=CREATED,
    next_attempt_at="2027-01-31T12:00:05.012400Z",
    last_error="HTTP_503",
)
_SCHEDULE = schedule_wire.Schedule(
    namespace="default",
    id="standup",
    schedule_uuid="8d0cf1d5-2a44-5d1c-a5d7-5e0c3b1f7a90",
    shard_id=5,
    status=ScheduleStatus.ACTIVE,
    sentence="Every weekday at 09:00, Europe/Berlin",
    next_instants=["2027-02-01T08:00:00Z", "2027-02-02T08:00:00Z", "2027-02-03T08:00:00Z"],
    counts={"completed": 41, "failed": 1},
    missed={},
    triggers_waiting=0,
    replays_waiting=0,
    backfills_waiting=0,
    catch_up=CatchUp.LATEST,
    jitter="0s",
    pause_after_failures=0,
    only=[],
    skip=["holidays-de"],
    on_skipped=OnSkipped.NONE,
    skipped_instants=[],
    callback_url="https://shop.example/hooks/standup",
    method="POST",
    headers={},
    callback_timeout_seconds=10,
    tags=["team"],
    created_at=CREATED,
    updated_at=CREATED,
    version=1,
    managed_by="shop",
    cron="0 9 * * MON-FRI",
    time_zone="Europe/Berlin",
    payload=msgspec.Raw(b'{"room":"blue"}'),
    occurrence_at="2027-02-01T08:00:00Z",
    attempts=0,
    next_attempt_at="2027-02-01T08:00:00Z",
    last_occurrence=schedule_wire.Occurrence(
        instant="2027-01-29T08:00:00Z",
        source=Source.REGULAR,
        outcome="completed",
        finished_at="2027-01-29T08:00:00.087500Z",
        attempts=1,
    ),
)
_RUN = wire.RunAnswer(
    run="1-2a",
    execute_at=_AT,
    status=RunStatus.PENDING,
    attempts=1,
    attempt_log=[_ATTEMPT],
)
_SECRET = "whsec_c2VjcmV0IG9mIHRoaXMgZXhhbXBsZSBvbmx5"
_KEY: Json = {
    "key_id": "1f0c9a7be2d4",
    "role": Role.WRITE,
    "name": "billing service",
    "namespaces": ["billing"],
    "tenants": [],
    "created_at": CREATED,
}
_NAMESPACE = administration.Namespace(
    name="orders",
    num_shards=16,
    history=HistoryMode.ALL,
    retention="3d",
    paused=False,
    signed=True,
    answers=Answers.STANDARD,
    retry_policy=wire.RetryPolicyAnswer(10, "5s", 3, "4h"),
    created_at=CREATED,
    updated_at=CREATED,
    version=1,
    quotas=administration.QuotasAnswer(pending=100_000, creates_per_second=50),
)
_CALENDAR = calendars.Calendar(
    namespace="orders",
    name="holidays-de",
    time_zone="Europe/Berlin",
    dates=["2027-01-01", "2027-12-25"],
    ranges=[calendars.DateRangeAnswer("2027-12-27", "2027-12-31")],
    weekdays=[],
    description="Public holidays of Germany",
    version=1,
    created_at=CREATED,
    updated_at=CREATED,
)
_CREDENTIAL = credentials.Credential(
    namespace="orders",
    name="billing-api",
    type=CredentialType.OAUTH2,
    hosts=["api.example.com"],
    token_url="https://login.example.com/oauth2/token",
    client_id="tocsin",
    client_authentication=ClientAuth.BASIC,
    scope="bills",
    version=1,
    created_at=CREATED,
    updated_at=CREATED,
)
_TESTED = credentials.TestedCredential(
    True,
    [
        credentials.TestStep("token", "https://login.example.com:443", True, "a token was issued"),
        credentials.TestStep("connection", "https://api.example.com:443", True, "connected"),
    ],
)
_SIGNING_KEY = credentials.SigningKey(
    "EC",
    "P-256",
    "inQqsefRJ6kXiypSJ8LjWO7Bm-nIb54gCQkiqVAwa-Y",
    "mKyAls52cxf0dCvNbduKhHmkhqqVlzbtX58OxZnM_8Q",
    "RkD22atHdDasjExrsQMYuwJwD78kDROIDjSP1jkjKwk",
    "sig",
    "ES256",
)
_MONITOR = monitor_wire.Monitor(
    namespace="orders",
    id="nightly-backup",
    cron="0 3 * * *",
    time_zone="Europe/Berlin",
    grace="30m",
    tags=[],
    state=MonitorStatus.UP,
    since=CREATED,
    running=False,
    last_ping_at="2027-01-31T02:02:17Z",
    expected_at="2027-02-01T02:00:00Z",
    deadline="2027-02-01T02:30:00Z",
    version=1,
    created_at=CREATED,
    updated_at=CREATED,
)
_PING_URL = "https://timers.example/ping/Yk3v9x2qmT0aXW5cJr8e1g"
_CALENDAR_SUMMARY = calendars.CalendarSummary(
    namespace="orders",
    name="holidays-de",
    time_zone="Europe/Berlin",
    date_count=2,
    range_count=1,
    weekdays=[],
    description="Public holidays of Germany",
    first_date="2027-01-01",
    last_date="2027-12-31",
    version=1,
    created_at=CREATED,
    updated_at=CREATED,
)
_FLOW = flows.Flow(
    namespace="orders",
    match="customer:",
    per_key=flows.FlowLimitsAnswer(flows.FlowRateAnswer(100, "1m"), 10, 2),
    close_on_retry_after=False,
    paused=False,
    version=1,
    created_at=CREATED,
    updated_at=CREATED,
    in_flight=3,
    waiting=12,
    complete=True,
)
_DESTINATION = destinations.Destination(
    destination="https://shop.example:443",
    paused=False,
    in_flight=1,
    limit=256,
    waiting=120,
    attempts=40,
    failures=39,
    breaker=BreakerState.OPEN,
    next_probe_at=CREATED,
    last_error="HTTP 503",
    last_error_at=CREATED,
    nodes=[
        destinations.DestinationOnNode(
            node="n1",
            in_flight=1,
            limit=256,
            waiting=120,
            attempts=40,
            failures=39,
            breaker=BreakerState.OPEN,
            next_probe_at=CREATED,
        )
    ],
    complete=True,
)
_ITEM_ERROR = wire.ItemError(
    error="INVALID_INPUT",
    message="timers[1].delay: is not a duration; write it as 30s",
    status=400,
    errors=[wire.BadField(path="timers[1].delay", reason="is not a duration; write it as 30s")],
)
#: The fields that a call has in lists and in full.
_CALL_FIELDS: Json = {
    "service_call_id": _CALL,
    "tenant_id": _TENANT,
    "name": "Charge order 17",
    "status": CallStatus.SUCCEEDED,
    "submitted_at": CREATED,
    "due_at": _AT,
    "tags": ["orders", "eu"],
    "correlation_id": CORRELATION_ID,
    "attempts": 1,
    "started_at": _AT,
    "finished_at": _FINISHED,
    "outcome": agent_wire.Outcome(
        response_meta=agent_wire.ResponseMeta(
            status=201, headers={"content-type": "application/json"}, body_snippet='{"charge":4711}', latency_ms=87.5
        )
    ),
}

_FAILURE = failures.Failure(
    failure_id="dAAGaq8j7QAAAAAAAAAAAAABaq8j7QAAAAAAAAAAAAAAAAAAAAAAAAABb3JkZXItMTctcmVtaW5kZXI",
    namespace="default",
    kind=FailedKind.TIMER,
    id="order-17-reminder",
    execute_at=_AT,
    failed_at=_FINISHED,
    destination="https://shop.example/hooks/reminder",
    error="HTTP 500",
)
_JOB = jobs.Job(
    id="5f2b8c1d9e3a7f6045c2d1ab",
    namespace="default",
    action=JobAction.SHIFT,
    of=JobKind.TIMERS,
    filter=jobs.JobFilterAnswer(created_before=CREATED, tags=["orders"], execute_before="2027-02-01T00:00:00Z"),
    state=JobState.RUNNING,
    rate_per_second=500,
    dry_run=False,
    matched=700,
    changed=698,
    skipped=1,
    errors=1,
    sample_errors=[
        jobs.JobFailure(
            namespace="default",
            id="order-9-reminder",
            error="it would be due before 1970, or later than timers may be",
        )
    ],
    created_at=CREATED,
    updated_at=CREATED,
    shift_by="2h",
    match_max=1200,
    examined_to=_AT,
    created_by="1f0c9a7be2d4",
)
_ANSWERS: tuple[msgspec.Struct, ...] = (
    _TIMER,
    wire.Explanation(
        state=TimerState.RETRYING,
        shard=3,
        owner="a",
        sentence="Attempt 1 failed (HTTP_503). The next one begins at 2027-01-31T12:00:05.012400Z.",
        waits_for=WaitsFor.INSTANT,
        next="2027-01-31T12:00:05.012400Z",
    ),
    wire.TimerPage(timers=[_TIMER], next_cursor="AYp1b2c3"),
    _SCHEDULE,
    schedule_wire.SchedulePage(schedules=[_SCHEDULE], next_cursor="standup"),
    jobs.JobAnswer(_JOB),
    jobs.JobList([_JOB]),
    schedule_wire.OccurrencePage(
        occurrences=[
            schedule_wire.OccurrenceRun(
                run="s-1801209600000000",
                instant="2027-01-29T08:00:00Z",
                status=RunStatus.COMPLETED,
                attempts=1,
                attempt_log=[wire.Attempt("2027-01-29T08:00:00.001200Z", 86.3, 200)],
                missed=[],
                source=Source.REGULAR,
            )
        ]
    ),
    schedule_wire.Preview(
        instants=["2027-02-01T08:00:00Z", "2027-02-02T08:00:00Z"],
        sentence="Every weekday at 09:00, Europe/Berlin",
        excluded=[],
    ),
    wire.RunPageAnswer(runs=[_RUN], next_cursor="AYp1b2c3"),
    wire.BatchResults(results=[wire.BatchResult(timer=_TIMER), wire.BatchResult(error=_ITEM_ERROR)]),
    _NAMESPACE,
    administration.NamespaceList(namespaces=[_NAMESPACE]),
    _FLOW,
    flows.FlowPage(flows=[_FLOW]),
    _CALENDAR,
    calendars.CalendarPage(calendars=[_CALENDAR_SUMMARY]),
    _CREDENTIAL,
    credentials.CredentialPage(credentials=[_CREDENTIAL]),
    _TESTED,
    credentials.SigningKeySet([_SIGNING_KEY]),
    credentials.OpenIdConfiguration("https://timers.example", "https://timers.example/.well-known/jwks.json"),
    monitor_wire.MonitorAnswer(monitor=_MONITOR),
    monitor_wire.MonitorPut(monitor=_MONITOR, created=True, ping_url=_PING_URL),
    monitor_wire.MonitorRotated(monitor=_MONITOR, ping_url=_PING_URL),
    monitor_wire.MonitorPage(monitors=[_MONITOR]),
    monitor_wire.MonitorPeriods(
        periods=[
            monitor_wire.MonitorPeriod(
                expected_at="2027-01-31T02:00:00Z",
                deadline="2027-01-31T02:30:00Z",
                state=PeriodStatus.ON_TIME,
                started_at="2027-01-31T02:00:00.100000Z",
                ended_at="2027-01-31T02:02:17Z",
                duration_ms=136_900.0,
                exit_code=0,
            )
        ]
    ),
    _DESTINATION,
    destinations.DestinationList(destinations=[_DESTINATION], further=0),
    inbox.DeadRowPage(
        rows=[
            inbox.DeadRow(
                id="0197a3c0-0000-7000-8000-000000000001",
                namespace="orders",
                timer_id="remind-17",
                created_at=CREATED,
                dead_reason="NAMESPACE_NOT_FOUND: no namespace 'orders'",
            )
        ]
    ),
    inbox.ReplayedRows(replayed=12, more=False),
    inbox.DeletedRows(deleted=1, more=False),
    administration.AuditPage(
        entries=[
            administration.AuditEntry(
                at=CREATED,
                action="namespace_changed",
                key_id="1f0c9a7be2d4",
                subject="orders",
                source="api",
                address="192.0.2.7",
                node="a",
                details={"paused": True},
            )
        ]
    ),
    statistics.Statistics(
        from_="2027-01-31T11:00:00Z",
        to="2027-01-31T12:00:00Z",
        resolution=statistics.StatisticsResolution.MINUTE,
        slots=[
            statistics.StatisticsSlot(
                at="2027-01-31T11:59:00Z",
                created=118,
                updated=2,
                canceled=5,
                attempts=121,
                completed=112,
                rescheduled=1,
                retried=7,
                failed=1,
                superseded=0,
                expired=0,
                late=3,
                lag_p50_ms=1.9,
                lag_p99_ms=2400.0,
                lag_max_ms=2650.5,
            )
        ],
        failing=[
            statistics.FailingDestination(
                namespace="orders",
                destination="https://shop.example:443",
                path="/hooks/reminder",
                failures=8,
                exhausted=1,
                last_error="HTTP_503",
                last_at="2027-01-31T11:59:40Z",
            )
        ],
        outages=[
            statistics.Outage(
                node="a",
                from_="2027-01-31T11:12:09.250000Z",
                reason="lease",
                to="2027-01-31T11:13:16.250000Z",
                late=214,
                late_max_ms=50120.5,
                creates_refused=17,
            )
        ],
    ),
    cluster.Cluster(
        total_shards=4,
        dispatching=True,
        nodes=[
            cluster.Node(
                node="a",
                incarnation="8f2b6c1d",
                address="10.0.0.1:7946",
                alive=True,
                self=True,
                shards=4,
                version="0.1.0",
                dispatching=True,
                agent=True,
                window_timers=1200,
                lag_ms=0.0,
                vitals=cluster.Vitals(
                    uptime_s=86_400,
                    cpu_cores=0.21,
                    memory_bytes=96_468_992,
                    loop_lag_ms=2.4,
                    read_p50_ms=0.6,
                    read_p99_ms=1.9,
                    commit_p50_ms=1.3,
                    commit_p99_ms=4.3,
                    in_flight=2,
                    callback_connections=8,
                    client_connections=3,
                    store_error=None,
                    store_error_at=None,
                ),
            )
        ],
        shards=[
            cluster.Shard(
                shard_id=0,
                version=7,
                owner="a",
                owned_here=True,
                window_timers=300,
                in_flight=2,
                complete_to="2027-01-31T12:05:00Z",
                lag_ms=0.0,
            )
        ],
    ),
    cluster.Health(status="ok"),
    administration.RotatedSecret(name="orders", secret=_SECRET, previous_until=_AT),
    administration.CreatedKey(**_KEY, key="tk_1f0c9a7be2d4_…"),
    administration.KeyList(keys=[administration.ShownKey(**_KEY)]),
    agent_wire.RotatedTenantSecret(tenant_id=_TENANT, secret=_SECRET, previous_until=_AT),
    agent_wire.SubmittedServiceCall(service_call_id=_CALL, status=CallStatus.SCHEDULED, correlation_id=CORRELATION_ID),
    agent_wire.ServiceCallPage(
        service_calls=[
            agent_wire.ServiceCallSummary(
                **_CALL_FIELDS, request_spec=agent_wire.RequestLine(method="POST", url="https://pay.example/charges")
            )
        ]
    ),
    agent_wire.ServiceCall(
        **_CALL_FIELDS,
        request_spec=agent_wire.ShownRequest(
            method="POST",
            url="https://pay.example/charges",
            headers={"x-shop": "eu"},
            body=msgspec.Raw(b'{"order":17,"amount":"9.90"}'),
        ),
        executions=[
            agent_wire.Execution(
                number=1,
                execution_id=_EXECUTION,
                started_at=_AT,
                request=agent_wire.ExecutedRequest(
                    method="POST",
                    url="https://pay.example/charges",
                    headers={"x-shop": "eu"},
                    body='{"order":17,"amount":"9.90"}',
                ),
                finished_at=_FINISHED,
                response=agent_wire.ExecutedResponse(
                    status=201, headers={"content-type": "application/json"}, body='{"charge":4711}'
                ),
            )
        ],
    ),
    agent_wire.ServiceCallTrace(
        service_call_id=_CALL,
        correlation_id=CORRELATION_ID,
        entries=[
            agent_wire.TraceEntry(
                at=CREATED,
                kind="message",
                name="SubmitServiceCall",
                id="01890a5d-ac96-774b-bcce-b302099a8059",
                detail={"name": "Charge order 17"},
            )
        ],
    ),
    failures.FailureList(
        groups=[
            failures.FailureGroup(
                count=1,
                first_at=_FINISHED,
                last_at=_FINISHED,
                series=[1, *[0] * 23],
                newest=[_FAILURE],
                namespace="default",
                destination=_FAILURE.destination,
                error="HTTP 500",
                kind=FailedKind.TIMER,
                sample=failures.FailureSample(
                    method="POST",
                    url="https://shop.example/hooks/reminder",
                    attempt=wire.Attempt(_AT, 12.5, 500, "HTTP_500", "out of order"),
                ),
            )
        ],
        further_groups=0,
        count=1,
        at_least=False,
    ),
    failures.FailurePage(failures=[_FAILURE]),
    failures.DismissedFailures(dismissed=357, more=False),
)
_BY_TYPE = {type(answer): answer for answer in _ANSWERS}


def answer_example(struct: type[msgspec.Struct]) -> Any:
    """An example response of this type."""
    return msgspec.json.decode(msgspec.json.encode(_BY_TYPE[struct]))
