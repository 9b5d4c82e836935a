"""The structs of HTTP requests and responses about monitors."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model.monitor import BODY_BYTES_MAX, EXIT_CODE_MAX, MonitorStatus, PingEvent
from tocsin.model.period import PeriodStatus
from tocsin.web.http import constraints as limits
from tocsin.web.http.declared_wire import DryRun, ExpectedVersion, ManagedBy, Version
from tocsin.web.http.schedule_wire import Cron, ScheduleId
from tocsin.web.http.wire import (
    Cursor,
    Description,
    Hook,
    HookAnswer,
    Instant,
    ListedNamespace,
    NamespaceName,
    RequestStruct,
    ResponseStruct,
    Tags,
    about,
    page_of,
)

MONITOR_ID_CHARS_MAX = 120
_ID = re.compile(r"[A-Za-z0-9._:-]{1,120}\Z", re.ASCII)
MONITOR_ID = limits.Constraint(
    {"minLength": 1, "maxLength": MONITOR_ID_CHARS_MAX, "pattern": "^[A-Za-z0-9._:-]+$"},
    (),
    lambda _, name: (
        None if _ID.match(name) else f"is no monitor's id; use 1 to {MONITOR_ID_CHARS_MAX} letters, digits and . _ : -"
    ),
)
_PREFIX = limits.Constraint(
    {"maxLength": MONITOR_ID_CHARS_MAX, "pattern": "^[A-Za-z0-9._:-]*$"},
    (),
    lambda _, name: None if not name or _ID.match(name) else "is no beginning of a monitor's id",
)
MonitorId = Annotated[
    str, about("The monitor's id, unique among its namespace's monitors.", "nightly-backup"), MONITOR_ID
]
MonitorZone = Annotated[
    str,
    about("The IANA time zone of cron. Default UTC.", "Europe/Berlin"),
    limits.Constraint({"minLength": 1, "maxLength": 64}),
]
Every = Annotated[
    str, about("A report is expected so long after the last one; 1s to 366d, instead of cron.", "15m"), limits.DURATION
]
Watches = Annotated[
    ScheduleId,
    about(
        "The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping, and is late when "
        "an occurrence has not ended grace after its instant. It expects nothing while the schedule is paused, or after its "
        "end.",
        "nightly-report",
    ),
]
Grace = Annotated[
    str,
    about("How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.", "10m"),
    limits.DURATION,
]
Repeat = Annotated[
    str, about("While it is late, notify again so often; at least 1m. Default: once.", "1h"), limits.DURATION
]
ON_LATE = about("Who is notified when it is late, and when its job reports a failure, or an occurrence fails.")
ON_MONITOR_RECOVERY = about("Who is notified when its job succeeds after it was late or had failed.")
PingUrl = Annotated[
    str,
    about("The URL that its job pings, which nobody is shown again.", "https://timers.example/ping/NQ2…"),
]


class MonitorName(RequestStruct):
    """Identifies a monitor."""

    namespace: NamespaceName
    id: MonitorId


class MonitorFields(RequestStruct, kw_only=True):
    """When a monitor's job should report, and who is notified."""

    cron: Cron | UnsetType = UNSET
    time_zone: MonitorZone | UnsetType = UNSET
    every: Every | UnsetType = UNSET
    schedule: Watches | UnsetType = UNSET
    grace: Grace | UnsetType = UNSET
    repeat: Repeat | UnsetType = UNSET
    on_late: Annotated[Hook | UnsetType, ON_LATE] = UNSET
    on_recovery: Annotated[Hook | UnsetType, ON_MONITOR_RECOVERY] = UNSET
    tags: Tags | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class PutMonitor(MonitorFields, kw_only=True):
    """A monitor with all its fields; send exactly one of `cron`, `every` and `schedule`. Without `managedBy` an existing
    monitor keeps it."""

    namespace: NamespaceName
    id: MonitorId
    managed_by: ManagedBy | UnsetType = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET
    dry_run: DryRun | UnsetType = UNSET


class DeleteMonitor(MonitorName):
    """A monitor to delete."""

    expected_version: ExpectedVersion | UnsetType = UNSET


class ListMonitors(RequestStruct):
    """Which monitors are listed."""

    namespace: ListedNamespace
    state: Annotated[
        MonitorStatus | list[MonitorStatus] | UnsetType, about("Monitors with any of these states match.")
    ] = UNSET
    tag: Annotated[
        str | UnsetType, about("Monitors with this tag match.", "eu"), limits.text(limits.LIMITS.tag_chars_max)
    ] = UNSET
    managed_by: ManagedBy | UnsetType = UNSET
    id_prefix: Annotated[str | UnsetType, about("Monitors whose id begins so match.", "nightly-"), _PREFIX] = UNSET
    limit: Annotated[int | UnsetType, page_of("monitors"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class PingMonitor(MonitorName):
    """A report of the monitor's job."""

    event: Annotated[PingEvent | UnsetType, about("start, success or fail. Default success.")] = UNSET
    exit_code: Annotated[
        int | UnsetType, about("The job's exit code; any but 0 is a failure.", 0), limits.between(0, EXIT_CODE_MAX)
    ] = UNSET
    body: Annotated[
        str | UnsetType,
        about(
            f"What to keep with the period, such as the end of a log: the last {BODY_BYTES_MAX} bytes, without secrets."
        ),
    ] = UNSET


class MonitorHistory(MonitorName):
    """The monitor whose periods are wanted."""

    limit: Annotated[int | UnsetType, page_of("periods"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class Monitor(ResponseStruct, kw_only=True):
    """A monitor. `expectedAt` and `deadline` are those of its open period; absent while nothing is expected."""

    namespace: NamespaceName
    id: MonitorId
    cron: Cron | UnsetType = UNSET
    time_zone: MonitorZone | UnsetType = UNSET
    every: Every | UnsetType = UNSET
    schedule: Watches | UnsetType = UNSET
    grace: Grace
    repeat: Repeat | UnsetType = UNSET
    on_late: Annotated[HookAnswer | UnsetType, ON_LATE] = UNSET
    on_recovery: Annotated[HookAnswer | UnsetType, ON_MONITOR_RECOVERY] = UNSET
    tags: Tags
    description: Description | UnsetType = UNSET
    managed_by: ManagedBy | UnsetType = UNSET
    state: Annotated[
        MonitorStatus, about("new (no report yet, or no occurrence that has ended), up, late, failed or paused.")
    ]
    since: Annotated[Instant, about("Since when it has this state.")]
    running: Annotated[bool, about("Whether its job has started and not ended.")]
    last_ping_at: Annotated[Instant | UnsetType, about("When the last ping came, or the last occurrence ended.")] = (
        UNSET
    )
    expected_at: Annotated[
        Instant | UnsetType,
        about("When the next report is expected; the instant of the occurrence that should end next."),
    ] = UNSET
    deadline: Annotated[Instant | UnsetType, about("Until when that report is in time.")] = UNSET
    unwatched_since: Annotated[
        Instant | UnsetType,
        about(
            "Since when no node has looked at it although one should have: it may be late. Absent unless that is so."
        ),
    ] = UNSET
    version: Version
    created_at: Instant
    updated_at: Instant


class MonitorAnswer(ResponseStruct):
    """The monitor."""

    monitor: Monitor


class MonitorPut(ResponseStruct):
    """The monitor; with `pingUrl` if it was created and takes pings."""

    monitor: Monitor
    created: Annotated[bool, about("Whether there was none of this id.")]
    ping_url: PingUrl | UnsetType = UNSET


class MonitorRotated(ResponseStruct):
    """The monitor with its new URL."""

    monitor: Monitor
    ping_url: PingUrl


class MonitorPage(ResponseStruct):
    """A page of monitors, by namespace and id. A page without `nextCursor` is the last."""

    monitors: list[Monitor]
    next_cursor: Cursor | UnsetType = UNSET


class MonitorPeriod(ResponseStruct, kw_only=True):
    """A period, or several in a row that nobody has reported."""

    expected_at: Annotated[Instant, about("When its report was expected.")]
    deadline: Annotated[Instant, about("Until when a report was in time.")]
    state: Annotated[
        PeriodStatus,
        about(
            "onTime; late (after the deadline); missed (none came); failed; excused (it may have come while Tocsin could not "
            "take it, and nobody was notified)."
        ),
    ]
    periods: (
        Annotated[int, Meta(description="How many periods, from expectedAt on. Absent: one.", ge=2)] | UnsetType
    ) = UNSET
    started_at: Annotated[Instant | UnsetType, about("When the job reported that it began.")] = UNSET
    ended_at: Annotated[Instant | UnsetType, about("When its report came.")] = UNSET
    duration_ms: Annotated[float | UnsetType, about("How long the job took.", 1834.2)] = UNSET
    exit_code: Annotated[int | UnsetType, about("The exit code that it reported.", 0)] = UNSET
    body: Annotated[str | UnsetType, about("What it sent, without secrets.")] = UNSET
    note: Annotated[str | UnsetType, about("Why it is excused, was missed, or has failed.")] = UNSET


class MonitorPeriods(ResponseStruct):
    """A page of periods, newest first. A page without `nextCursor` is the last."""

    periods: list[MonitorPeriod]
    next_cursor: Cursor | UnsetType = UNSET
