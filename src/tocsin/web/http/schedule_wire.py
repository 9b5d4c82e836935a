"""The structs of HTTP requests and responses about schedules, like those of `tocsin.web.http.wire`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Generic

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model.calendar import NAMED_MAX
from tocsin.model.recurrence import EXPRESSION_CHARS_MAX
from tocsin.model.run import RunStatus
from tocsin.model.schedule import OCCURRENCES_MAX, REPLAYS_MAX, CatchUp, OnSkipped, ScheduleStatus, Source
from tocsin.web.http import constraints as limits
from tocsin.web.http.calendars import CALENDAR_NAME
from tocsin.web.http.declared_wire import DryRun, ExpectedVersion, ManagedBy, Version
from tocsin.web.http.wire import (
    ON_FAILURE,
    ON_MISSED,
    ON_PAUSED,
    ON_RECOVERY,
    ON_SUCCESS,
    AttemptLog,
    CallbackFields,
    CallbackUrl,
    Cursor,
    ExpireAfter,
    Hook,
    HookAnswer,
    Instant,
    ListedNamespace,
    Method,
    NamespaceName,
    Null,
    RawBodyAnswer,
    RequestStruct,
    ResponseStruct,
    RetryPolicyAnswer,
    Tags,
    TimeoutSeconds,
    about,
    page_of,
)

#: Instants of one preview.
PREVIEW_MAX, PREVIEW_DEFAULT = 100, 10
#: Excluded instants of one preview.
EXCLUDED_MAX = 100

ScheduleId = Annotated[
    str, about("The schedule's id, unique among its namespace's schedules.", "nightly-report"), limits.ID
]
Cron = Annotated[
    str,
    about(
        "A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first, "
        "or @hourly, @daily, @weekly, @monthly, @yearly.",
        "0 9 * * MON-FRI",
    ),
    limits.Constraint({"minLength": 1, "maxLength": EXPRESSION_CHARS_MAX}),
]
TimeZone = Annotated[
    str,
    about("The IANA time zone of cron. Default UTC.", "Europe/Berlin"),
    limits.Constraint({"minLength": 1, "maxLength": 64}),
]
Every = Annotated[str, about("An interval of 1s to 366d, by elapsed time, instead of cron.", "15m"), limits.DURATION]
Anchor = Annotated[
    str,
    about(
        "An instant from which every counts, in both directions. Default: the schedule's creation.",
        "2027-01-01T00:00:00Z",
    ),
    limits.INSTANT,
]
StartAt = Annotated[str, about("No instant is earlier than this.", "2027-01-01T00:00:00Z"), limits.INSTANT]
EndAt = Annotated[str, about("All instants are earlier than this.", "2028-01-01T00:00:00Z"), limits.INSTANT]
MaxOccurrences = Annotated[
    int,
    about("How many instants it has; afterwards it ends.", 10),
    limits.Constraint({"minimum": 1, "maximum": OCCURRENCES_MAX}),
]
Jitter = Annotated[
    str,
    about(
        "Longest delay of an instant; none is delayed past the next one. The delay depends only on the schedule and the "
        "instant. Default 0s.",
        "30s",
    ),
    limits.DURATION,
]
CatchUpMode = Annotated[
    CatchUp,
    about(
        "What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence has not "
        "finished. latest: the last of them fires (the default); all: each fires; none: none fires."
    ),
    limits.Constraint(limits.component("CatchUp")),
]
CatchUpWindow = Annotated[
    str,
    about("Instants that are later than this are missed. Default 24h; with catchUp none, 60s.", "24h"),
    limits.DURATION,
]
PauseAfterFailures = Annotated[
    int,
    about("Pauses the schedule when this many occurrences in a row have failed. Default 0: never.", 5),
    limits.Constraint({"minimum": 0, "maximum": 1_000_000}),
]


_CALENDARS = limits.Constraint(
    {"maxItems": NAMED_MAX, "items": {"type": "string", **CALENDAR_NAME.schema}, "uniqueItems": True}
)
Only = Annotated[
    list[str],
    about("Calendars: only instants on a date of one of them fire. Empty: no restriction.", ["trading-days"]),
    _CALENDARS,
]
SkipDates = Annotated[
    list[str], about("Calendars: no instant on a date of any of them fires.", ["holidays-de", "weekends"]), _CALENDARS
]
OnSkippedMode = Annotated[
    OnSkipped,
    about(
        "What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same time "
        "of day on the next date that is allowed, unless the rule has instants on that date or before it. next requires "
        "cron with fixed times."
    ),
    limits.Constraint(limits.component("OnSkipped")),
]


class LiveScheduleStatus(StrEnum):
    """The state of a schedule that has not ended."""

    ACTIVE = "active"
    PAUSED = "paused"


class DefinitionFields(CallbackFields[Null], Generic[Null], kw_only=True):
    """When a schedule is due, and what it sends: the fields that creating and updating share."""

    cron: Cron | UnsetType = UNSET
    time_zone: TimeZone | UnsetType = UNSET
    every: Every | UnsetType = UNSET
    anchor: Anchor | Null | UnsetType = UNSET
    start_at: StartAt | Null | UnsetType = UNSET
    end_at: EndAt | Null | UnsetType = UNSET
    max_occurrences: MaxOccurrences | Null | UnsetType = UNSET
    jitter: Jitter | UnsetType = UNSET
    catch_up: CatchUpMode | UnsetType = UNSET
    catch_up_window: CatchUpWindow | Null | UnsetType = UNSET
    pause_after_failures: PauseAfterFailures | UnsetType = UNSET
    only: Only | UnsetType = UNSET
    skip: SkipDates | UnsetType = UNSET
    on_skipped: OnSkippedMode | UnsetType = UNSET
    on_missed: Annotated[Hook | Null | UnsetType, ON_MISSED] = UNSET
    on_paused: Annotated[Hook | Null | UnsetType, ON_PAUSED] = UNSET


class CreateSchedule(DefinitionFields[UnsetType]):
    """A schedule to create; send exactly one of `cron` and `every`, and at most one of `payload` and `body`. Without
    `managedBy` an existing schedule keeps it."""

    namespace: NamespaceName
    id: Annotated[ScheduleId, limits.NEW_ID]
    callback_url: CallbackUrl
    managed_by: ManagedBy | UnsetType = UNSET
    paused: Annotated[
        bool | UnsetType, about("Whether a new schedule begins paused; one that exists stays as it is. Default false.")
    ] = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET
    dry_run: DryRun | UnsetType = UNSET


class ScheduleName(RequestStruct):
    """Identifies a schedule."""

    namespace: NamespaceName
    schedule_id: ScheduleId


class UpdateSchedule(DefinitionFields[None]):
    """Changes to a schedule; absent fields stay unchanged. A new `cron` replaces `every` and the other way round. Null
    removes `anchor`, `startAt`, `endAt`, `maxOccurrences`, `expireAfter`, `headers`, `description`, `flowKey`, `credential`,
    `managedBy` and the hooks, and restores the default of `catchUpWindow` and `retryPolicy`."""

    namespace: NamespaceName
    schedule_id: ScheduleId
    callback_url: CallbackUrl | UnsetType = UNSET
    managed_by: ManagedBy | UnsetType | None = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET


class DeleteSchedule(ScheduleName):
    """A schedule to delete."""

    expected_version: ExpectedVersion | UnsetType = UNSET


class ListSchedules(RequestStruct):
    """Which schedules are listed."""

    namespace: ListedNamespace
    status: Annotated[
        LiveScheduleStatus | list[LiveScheduleStatus] | UnsetType,
        about("active, paused, or both: schedules with any of them match. Ended ones are not listed."),
    ] = UNSET
    managed_by: ManagedBy | UnsetType = UNSET
    limit: Annotated[int | UnsetType, page_of("schedules"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class BackfillSchedule(RequestStruct):
    """The range of instants that fire once more."""

    namespace: NamespaceName
    schedule_id: ScheduleId
    after: Annotated[str, about("Only instants at or after this one.", "2027-01-30T00:00:00Z"), limits.INSTANT]
    before: Annotated[str, about("Only instants before this one.", "2027-01-31T00:00:00Z"), limits.INSTANT]


class SkipSchedule(ScheduleName):
    """An instant of a schedule that is still to come."""

    instant: Annotated[
        str,
        about("The instant, exactly as schedules/preview of the schedule shows it.", "2027-02-01T08:00:00Z"),
        limits.INSTANT,
    ]


class ReplaySchedule(RequestStruct):
    """The failed occurrences that fire again."""

    namespace: NamespaceName
    schedule_id: ScheduleId
    instants: Annotated[
        list[str],
        about("Their instants.", ["2027-01-30T12:00:00Z"]),
        limits.Constraint(
            {"minItems": 1, "maxItems": REPLAYS_MAX, "items": {"type": "string", **limits.INSTANT.schema}}
        ),
    ]


class PreviewSchedule(RequestStruct):
    """A definition, with exactly one of `cron` and `every`, or a schedule: `namespace` and `scheduleId`. A definition with
    `only` or `skip` requires the `namespace` of the calendars."""

    namespace: NamespaceName | UnsetType = UNSET
    schedule_id: ScheduleId | UnsetType = UNSET
    cron: Cron | UnsetType = UNSET
    time_zone: TimeZone | UnsetType = UNSET
    every: Every | UnsetType = UNSET
    anchor: Anchor | UnsetType = UNSET
    start_at: StartAt | UnsetType = UNSET
    end_at: EndAt | UnsetType = UNSET
    only: Only | UnsetType = UNSET
    skip: SkipDates | UnsetType = UNSET
    on_skipped: OnSkippedMode | UnsetType = UNSET
    count: Annotated[
        int | UnsetType, about("Maximum number of instants. Default 10.", 5), limits.between(1, PREVIEW_MAX)
    ] = UNSET


class ExclusionReason(StrEnum):
    """Why an instant doesn't fire: its date is of a calendar of `skip`, or of none of `only`; it was skipped by hand (once);
    or a calendar is missing, so that nobody knows."""

    ONLY = "only"
    SKIP = "skip"
    ONCE = "once"
    MISSING = "missing"


class ExcludedInstant(ResponseStruct):
    """An instant that does not fire."""

    instant: Annotated[
        str, about("The instant; one that a calendar excludes is without jitter.", "2027-02-06T08:00:00Z")
    ]
    reason: Annotated[ExclusionReason, about("only, skip, once or missing.")]
    calendar: Annotated[str | UnsetType, about("The calendar, or those of only.", "weekends")] = UNSET


class Preview(ResponseStruct):
    """The next instants, fewer than asked for if there are no more."""

    instants: Annotated[list[Instant], about("The next instants, in UTC. Those of a schedule include its jitter.")]
    sentence: Annotated[str, about("When it runs, in words.", "Every weekday at 09:00, Europe/Berlin")]
    excluded: Annotated[
        list[ExcludedInstant],
        about(
            "The instants until the last of these that don't fire, and why; with onSkipped next those that move. At most "
            f"{EXCLUDED_MAX}."
        ),
    ]


class ScheduleHistory(ScheduleName):
    """The schedule whose occurrences are wanted."""

    limit: Annotated[int | UnsetType, page_of("occurrences"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class MissedRange(ResponseStruct):
    """Instants that did not fire, from the first to the last."""

    reason: Annotated[str, about("late, overlap, window, paused or excluded.", "overlap")]
    count: Annotated[int, Meta(description="How many; 1,000 stands for more, too.", ge=1)]
    first_at: Instant
    last_at: Instant


class OccurrenceRun(ResponseStruct):
    """One occurrence with its attempts. `pending` is the current one. `missed`: instants that did not fire, with no
    occurrence before them."""

    run: Annotated[str, about("Its name, which is part of the webhook-id of its attempts.", "s-1801126800000000")]
    instant: Instant
    status: RunStatus
    attempts: Annotated[int, Meta(description="Number of attempts made, of which the latest are kept.", ge=0)]
    attempt_log: AttemptLog
    missed: Annotated[
        list[MissedRange],
        about("Instants between this occurrence and the next that did not fire; excluded ones are before it."),
    ]
    source: Annotated[
        Source | UnsetType, about("Why it fired: regular, trigger, backfill or replay; absent if it did not.")
    ] = UNSET


class OccurrencePage(ResponseStruct):
    """A page of occurrences, newest first. A page without `nextCursor` is the last."""

    occurrences: list[OccurrenceRun]
    next_cursor: Cursor | UnsetType = UNSET


class Occurrence(ResponseStruct):
    """An occurrence that has ended."""

    instant: Annotated[str, about("Its instant.", "2027-01-31T12:00:00Z")]
    source: Annotated[
        Source, about("Why it fired: its instant had come (regular), a trigger, a backfill, or a replay.")
    ]
    outcome: Annotated[str, about("How it ended: completed, failed or expired.", "completed")]
    finished_at: Instant
    attempts: Annotated[int, Meta(description="Its attempts.", ge=0)]


class Schedule(ResponseStruct):
    """A schedule: its definition, and where it stands."""

    namespace: NamespaceName
    id: ScheduleId
    schedule_uuid: Annotated[str, about("Derived from namespace and id.")]
    shard_id: Annotated[int, Meta(description="The shard that holds the schedule.", ge=0)]
    status: Annotated[ScheduleStatus, about("active, paused, or ended: it has no more instants, or was deleted.")]
    sentence: Annotated[str, about("When it runs, in words.", "Every weekday at 09:00, Europe/Berlin")]
    next_instants: Annotated[list[str], about("Its next three instants.")]
    counts: Annotated[dict[str, int], about("Its ended occurrences by outcome.", {"completed": 41, "failed": 1})]
    missed: Annotated[
        dict[str, int],
        about(
            "Instants that did not fire, by reason: late (they passed before it could fire), overlap (the previous "
            "occurrence had not finished), window (older than the catch-up window), paused, excluded (by a calendar, or "
            "skipped by hand).",
            {"overlap": 2},
        ),
    ]
    triggers_waiting: Annotated[int, Meta(description="Triggers that wait to be fired.", ge=0)]
    backfills_waiting: Annotated[int, Meta(description="Backfills that are not complete.", ge=0)]
    replays_waiting: Annotated[int, Meta(description="Failed occurrences that wait to be replayed.", ge=0)]
    catch_up: Annotated[CatchUp, about("What becomes of instants that pass while it cannot fire.")]
    jitter: Annotated[str, about("By how much each instant is delayed at most.", "0s")]
    pause_after_failures: Annotated[int, Meta(description="Failed occurrences in a row that pause it; 0: never.", ge=0)]
    only: Only
    skip: SkipDates
    on_skipped: Annotated[OnSkipped, about("What becomes of instants that its calendars exclude.")]
    skipped_instants: Annotated[list[str], about("Instants to come that are skipped by hand.")]
    callback_url: CallbackUrl
    method: Method
    headers: Annotated[dict[str, str], about("Additional headers of the callback; secret values are [redacted].")]
    callback_timeout_seconds: TimeoutSeconds
    tags: Tags
    created_at: Instant
    updated_at: Instant
    version: Annotated[Version, about("1, and one more with each change by a client.", 1)]
    cron: Cron | UnsetType = UNSET
    time_zone: Annotated[str | UnsetType, about("The time zone of cron.", "Europe/Berlin")] = UNSET
    every: Every | UnsetType = UNSET
    anchor: Annotated[str | UnsetType, about("From which instant every counts.")] = UNSET
    start_at: Annotated[str | UnsetType, about("No instant is earlier than this.")] = UNSET
    end_at: Annotated[str | UnsetType, about("All instants are earlier than this.")] = UNSET
    max_occurrences: Annotated[int | UnsetType, about("How many instants it has.")] = UNSET
    catch_up_window: Annotated[
        str | UnsetType, about("Instants that are later than this are missed; absent while the default applies.", "1d")
    ] = UNSET
    expire_after: ExpireAfter | UnsetType = UNSET
    description: Annotated[str | UnsetType, about("What the schedule is for.", "Reminds of the invoice")] = UNSET
    flow_key: Annotated[str | UnsetType, about("The flow that limits its attempts.", "customer:17")] = UNSET
    credential: Annotated[str | UnsetType, about("The credential that its requests have.", "billing-api")] = UNSET
    payload: Annotated[msgspec.Raw | UnsetType, about("Absent if the schedule has a body.")] = UNSET
    body: Annotated[
        RawBodyAnswer | UnsetType, about("The whole body of the callback, instead of the envelope with the payload.")
    ] = UNSET
    retry_policy: Annotated[
        RetryPolicyAnswer | UnsetType, about("The schedule's own policy; absent while the namespace's applies.")
    ] = UNSET
    paused_reason: Annotated[str | UnsetType, about("Why it is paused; absent unless it is.")] = UNSET
    occurrence_at: Annotated[
        str | UnsetType, about("The instant of the current occurrence, waiting or being attempted; absent once ended.")
    ] = UNSET
    attempts: Annotated[int, Meta(description="Attempts of the current occurrence.", ge=0)] | UnsetType = UNSET
    next_attempt_at: Annotated[str | UnsetType, about("When the next attempt is due.")] = UNSET
    last_error: Annotated[
        str | UnsetType, about("Why the last failed attempt failed: a stable code, then details.")
    ] = UNSET
    last_occurrence: Annotated[Occurrence | UnsetType, about("The occurrence that ended last.")] = UNSET
    suspended: Annotated[
        str | UnsetType,
        about(
            "Why the current occurrence is suspended although the schedule is active: as in a timer's `suspended`; absent "
            "unless it is.",
            "egress",
        ),
    ] = UNSET
    on_failure: Annotated[HookAnswer | UnsetType, ON_FAILURE] = UNSET
    on_success: Annotated[HookAnswer | UnsetType, ON_SUCCESS] = UNSET
    on_recovery: Annotated[HookAnswer | UnsetType, ON_RECOVERY] = UNSET
    on_missed: Annotated[HookAnswer | UnsetType, ON_MISSED] = UNSET
    on_paused: Annotated[HookAnswer | UnsetType, ON_PAUSED] = UNSET
    managed_by: ManagedBy | UnsetType = UNSET


class SchedulePage(ResponseStruct):
    """A page of schedules, ordered by id. A page without `nextCursor` is the last."""

    schedules: list[Schedule]
    next_cursor: Cursor | UnsetType = UNSET
