"""The arguments of the tools: fields of the API's requests, fewer of them, and with defaults that suit models."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.timer import Status
from tocsin.web.api.mcp.options import IDS_MAX, ROWS_DEFAULT, ROWS_MAX
from tocsin.web.http import constraints as limits
from tocsin.web.http import schedule_wire, wire
from tocsin.web.http.failures import Since
from tocsin.web.http.wire import about

Namespace = Annotated[str, about("The namespace's name.", "default"), limits.NAME]
ListedNamespace = Annotated[
    str, about("The namespace's name; `*`: all that the API key has access to.", "default"), limits.NAME_OR_EVERY
]
Rows = Annotated[int, about(f"Maximum number on the page. Default {ROWS_DEFAULT}."), limits.between(1, ROWS_MAX)]
Ids = Annotated[
    list[str],
    about(f"Ids of timers, at most {IDS_MAX}.", ["order-17-reminder"]),
    limits.Constraint({"minItems": 1, **limits.unique(IDS_MAX, limits.ID.schema).schema}),
]
TimerId = Annotated[str, about("The timer's id.", "order-17-reminder"), limits.ID]
TimeZone = Annotated[
    str, about("The IANA time zone of cron, such as Europe/Berlin or UTC. Required with cron.", "Europe/Berlin")
]


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Base of arguments: unknown ones are refused. Not a request of the API, whose document has all of those."""


class ListTimers(Arguments):
    """Which timers are listed."""

    namespace: ListedNamespace = "default"
    status: Annotated[list[Status] | UnsetType, about("Timers with any of these. Default: all.")] = UNSET
    tags: Annotated[list[str] | UnsetType, about("A timer must have all of these tags."), limits.TAGS] = UNSET
    id_prefix: Annotated[str | UnsetType, about("Prefix of the ids."), limits.ID_PREFIX] = UNSET
    execute_after: wire.Instant | UnsetType = UNSET
    execute_before: wire.Instant | UnsetType = UNSET
    destination: Annotated[str | UnsetType, about("A part of the callback's host and path."), limits.PART] = UNSET
    error: Annotated[str | UnsetType, about("A part of the last error."), limits.PART] = UNSET
    limit: Rows = ROWS_DEFAULT
    cursor: wire.Cursor | UnsetType = UNSET


class NamedTimer(Arguments):
    """One timer."""

    id: TimerId
    namespace: Namespace = "default"


class CreateTimer(Arguments):
    """A timer to create; exactly one of executeAt and delay."""

    callback_url: wire.CallbackUrl
    namespace: Namespace = "default"
    execute_at: wire.ExecuteAt | UnsetType = UNSET
    delay: wire.Delay | UnsetType = UNSET
    id: Annotated[wire.NewTimerId, about("Unique in the namespace. Default: a new one.")] | UnsetType = UNSET
    payload: Annotated[msgspec.Raw | UnsetType, about("Any JSON, sent to the URL.")] = UNSET
    method: wire.Method | UnsetType = UNSET
    headers: Annotated[dict[str, str] | UnsetType, about("Additional headers of the callback."), limits.HEADERS] = UNSET
    tags: wire.Tags | UnsetType = UNSET
    description: Annotated[str | UnsetType, about("What it is for, in one line.")] = UNSET


class CancelTimers(Arguments):
    """The pending timers to cancel."""

    ids: Ids
    namespace: Namespace = "default"


class ReplayTimers(Arguments):
    """The finished timers to fire again, at once unless executeAt or delay is given."""

    ids: Ids
    namespace: Namespace = "default"
    execute_at: wire.ExecuteAt | UnsetType = UNSET
    delay: wire.Delay | UnsetType = UNSET


class ListSchedules(Arguments):
    """Which schedules are listed."""

    namespace: ListedNamespace = "default"
    limit: Rows = ROWS_DEFAULT
    cursor: wire.Cursor | UnsetType = UNSET


class NamedSchedule(Arguments):
    """One schedule."""

    schedule_id: schedule_wire.ScheduleId
    namespace: Namespace = "default"


class Timing(Arguments):
    """When a schedule is due: exactly one of cron and every; with cron its time zone."""

    cron: schedule_wire.Cron | UnsetType = UNSET
    time_zone: TimeZone | UnsetType = UNSET
    every: schedule_wire.Every | UnsetType = UNSET
    anchor: schedule_wire.Anchor | UnsetType = UNSET
    start_at: schedule_wire.StartAt | UnsetType = UNSET
    end_at: schedule_wire.EndAt | UnsetType = UNSET


class PreviewSchedule(Timing):
    """A timing, or else a schedule that exists: scheduleId, with its namespace."""

    schedule_id: schedule_wire.ScheduleId | UnsetType = UNSET
    namespace: Namespace | UnsetType = UNSET
    count: Annotated[
        int | UnsetType,
        about("Maximum number of instants. Default 10.", 5),
        limits.between(1, schedule_wire.PREVIEW_MAX),
    ] = UNSET


class CreateSchedule(Timing, kw_only=True):
    """A schedule to create."""

    id: Annotated[schedule_wire.ScheduleId, limits.NEW_ID]
    callback_url: wire.CallbackUrl
    namespace: Namespace = "default"
    max_occurrences: schedule_wire.MaxOccurrences | UnsetType = UNSET
    payload: Annotated[msgspec.Raw | UnsetType, about("Any JSON, sent to the URL.")] = UNSET
    method: wire.Method | UnsetType = UNSET
    headers: Annotated[dict[str, str] | UnsetType, about("Additional headers of the callback."), limits.HEADERS] = UNSET
    tags: wire.Tags | UnsetType = UNSET
    description: Annotated[str | UnsetType, about("What it is for, in one line.")] = UNSET


class ListFailures(Arguments):
    """Which failures are grouped."""

    namespace: ListedNamespace = "default"
    since: Since | UnsetType = UNSET
    limit: Annotated[int, about(f"Maximum number of groups. Default {ROWS_DEFAULT}."), limits.between(1, ROWS_MAX)] = (
        ROWS_DEFAULT
    )


class TwoStepTool(StrEnum):
    """A tool that changes nothing until its dry run is confirmed."""

    CANCEL_TIMERS = "cancel_timers"
    REPLAY_TIMERS = "replay_timers"
    CREATE_SCHEDULE = "create_schedule"
    DELETE_SCHEDULE = "delete_schedule"


class Confirm(Arguments):
    """What a dry run has shown, to be done now."""

    tool: Annotated[TwoStepTool, about("The tool whose dry run is confirmed.")]
    arguments: Annotated[dict[str, Any], about("The arguments of that dry run, unchanged.")]
    token: Annotated[str, about("The token that it returned.")]
