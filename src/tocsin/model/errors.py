"""The errors of the domain: one base class, and one class for each kind of failure.

Adapters translate their drivers' exceptions into the store errors; only `tocsin.web.http.errors` translates them into HTTP
statuses.
"""

from __future__ import annotations

from dataclasses import dataclass


class TocsinError(Exception):
    """Base of every error that Tocsin raises on purpose."""

    code = "INTERNAL"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field. `path` is dotted, as in `timers[3].executeAt`; `reason` states what is wrong and how to correct it."""

    path: str
    reason: str


class InvalidInput(TocsinError):
    """The request can't be accepted. Nothing was written."""

    code = "INVALID_INPUT"

    def __init__(self, *errors: FieldError) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{e.path}: {e.reason}" if e.path else e.reason for e in errors))


class PayloadTooLarge(InvalidInput):
    """A timer's payload, or the body of a service call's request, exceeds its limit, or the whole timer exceeds what the
    store can hold, and nothing else is wrong."""

    code = "PAYLOAD_TOO_LARGE"


class TooManyTags(InvalidInput):
    """The service call already has the greatest number of tags. Nothing was written."""

    code = "TOO_MANY_TAGS"


class NotFound(TocsinError):
    """The named thing does not exist."""

    code = "NOT_FOUND"


class TimerNotFound(NotFound):
    """No pending or retained finished timer has this namespace and id."""

    code = "TIMER_NOT_FOUND"


class ScheduleNotFound(NotFound):
    """No schedule has this namespace and id."""

    code = "SCHEDULE_NOT_FOUND"


class MonitorNotFound(NotFound):
    """No monitor has this namespace and id, or this ping token."""

    code = "MONITOR_NOT_FOUND"


class NamespaceNotFound(NotFound):
    """The namespace does not exist."""

    code = "NAMESPACE_NOT_FOUND"


class FlowNotFound(NotFound):
    """The namespace has no rule of flows with this match."""

    code = "FLOW_NOT_FOUND"


class CalendarNotFound(NotFound):
    """The namespace has no calendar of this name."""

    code = "CALENDAR_NOT_FOUND"


class KeyNotFound(NotFound):
    """No API key has this id, or the caller may not see it."""

    code = "KEY_NOT_FOUND"


class ServiceCallNotFound(NotFound):
    """The tenant has no such service call, or it was removed."""

    code = "SERVICE_CALL_NOT_FOUND"


class JobNotFound(NotFound):
    """No job has this id, or the caller may not see it."""

    code = "JOB_NOT_FOUND"


class Conflict(TocsinError):
    """The request conflicts with the present state."""

    code = "CONFLICT"


class VersionConflict(Conflict):
    """The object has not the version that the request expects: another change came first. Nothing was written."""

    code = "VERSION_CONFLICT"


def version_conflict(what: str, present: int, expected: int | None) -> VersionConflict | None:
    """Why a change is not for what is named, such as `flow 'a'`, if its version is not the one that is expected. Version 0:
    there is none; None expects nothing."""
    if expected in (None, present):
        return None
    stands = f"has version {present}" if present else "does not exist"
    return VersionConflict(f"{what} {stands}, but {f'version {expected} of it' if expected else 'none'} is expected")


class TimerNotPending(Conflict):
    """The timer has finished, so it can't be updated or deleted. It can be created again."""

    code = "TIMER_NOT_PENDING"


class TimerPending(Conflict):
    """The timer has not finished, so it can't be replayed. Nothing was written."""

    code = "TIMER_PENDING"


class TimerNotReplayable(Conflict):
    """What is kept of the finished timer is not enough to fire it again: its namespace keeps no history, or its record can't
    be read. It can be created again."""

    code = "TIMER_NOT_REPLAYABLE"


class ScheduleEnded(Conflict):
    """The schedule has no more instants, or was deleted. It can be created again with another definition."""

    code = "SCHEDULE_ENDED"


class BacklogFull(Conflict):
    """Too many triggers or backfills of the schedule are waiting. Nothing was written."""

    code = "BACKLOG_FULL"


class TimerExists(Conflict):
    """A timer of that id exists, and the create asked not to replace it. Nothing was written."""

    code = "TIMER_EXISTS"


class CollectionFull(Conflict):
    """The debounced timer of that id has no room for another payload until it has fired. Nothing was written."""

    code = "COLLECTION_FULL"


class JobRunning(Conflict):
    """Another job that has not ended may change the same rows. Nothing was written."""

    code = "JOB_RUNNING"


class JobEnded(Conflict):
    """The job has ended. Nothing was written."""

    code = "JOB_ENDED"


class NamespaceExists(Conflict):
    """A namespace of that name exists."""

    code = "NAMESPACE_EXISTS"


class NamespaceDeleting(Conflict):
    """A job deletes the namespace, which takes no creates and changes meanwhile. Nothing was written."""

    code = "NAMESPACE_DELETING"


class NamespaceNotEmpty(Conflict):
    """The namespace has pending timers or schedules, which its deletion would cancel. Nothing was written."""

    code = "NAMESPACE_NOT_EMPTY"


class RotationPending(Conflict):
    """A replaced signing secret still signs, within its grace period. Nothing was changed."""

    code = "ROTATION_PENDING"


class TooManyKeys(Conflict):
    """The greatest number of API keys exists already. Nothing was written."""

    code = "TOO_MANY_KEYS"


class TooManyFlows(Conflict):
    """The namespace has the greatest number of rules of flows already. Nothing was written."""

    code = "TOO_MANY_FLOWS"


class CredentialNotFound(NotFound):
    """The namespace has no credential of this name."""

    code = "CREDENTIAL_NOT_FOUND"


class NotAnIssuer(NotFound):
    """This server signs no JWTs for receivers."""

    code = "NOT_AN_ISSUER"


class TooManyCredentials(Conflict):
    """The namespace has the greatest number of credentials already. Nothing was written."""

    code = "TOO_MANY_CREDENTIALS"


class TooManyCalendars(Conflict):
    """The namespace has the greatest number of calendars already. Nothing was written."""

    code = "TOO_MANY_CALENDARS"


class CalendarInUse(Conflict):
    """Schedules name the calendar, so that it can't be deleted. Nothing was written."""

    code = "CALENDAR_IN_USE"


class ClockHalted(Conflict):
    """A clock that can be moved did not reach the instant asked for. It shows an earlier one and may be advanced again."""

    code = "CLOCK_HALTED"


class ServiceCallNotScheduled(Conflict):
    """The service call has begun, so it can't be deleted."""

    code = "SERVICE_CALL_NOT_SCHEDULED"


class ServiceCallNotFailed(Conflict):
    """The service call has not failed, so it can't be retried. Nothing was written."""

    code = "SERVICE_CALL_NOT_FAILED"


class IdempotencyConflict(Conflict):
    """The same id or idempotency key was used before with other contents. Nothing was written."""

    code = "IDEMPOTENCY_CONFLICT"


class QuotaExceeded(TocsinError):
    """A quota of the namespace has no room for what the request creates or sends. Nothing was written."""

    code = "QUOTA_EXCEEDED"

    #: By default when to repeat a create that found too many pending timers: they end one by one.
    def __init__(self, message: str, retry_after_s: float = 10.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(TocsinError):
    """The request was not done, or its outcome is unknown. The same request may be sent again after `retry_after_s`."""

    code = "SHARD_UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ShardUnavailable(Unavailable):
    """This node does not own the shard (any longer), or a commit's outcome is unknown."""


class ShardMoved(ShardUnavailable):
    """This node does not own the shard (any longer), and certainly nothing was written: the request may be sent to the
    present owner."""


class Overloaded(Unavailable):
    """A limit on waiting work is reached. Nothing was accepted."""

    code = "OVERLOADED"


class RequestExpired(Unavailable):
    """The request's time budget ran out before its write was put into a batch. Nothing was written."""

    code = "REQUEST_EXPIRED"


#: The kinds of Unavailable after which certainly nothing was written. After the others, the outcome may be unknown.
NOT_DONE = (ShardMoved, Overloaded, RequestExpired)


class StoreError(TocsinError):
    """Base of what a store adapter raises."""

    code = "STORE_FAILURE"


class StoreCallFailed(StoreError):
    """A call failed; the store itself is sound, and another call may succeed."""


class DefiniteFailure(StoreCallFailed):
    """The transaction certainly had no effect. The same call may be repeated, or split into smaller ones."""


class OutcomeUnknown(StoreCallFailed):
    """The write may have taken effect, or may still take effect (time-out, broken connection during a commit)."""


class StoreUnavailable(DefiniteFailure):
    """The store can't be reached, or refuses everything (full disk, read-only). Nothing was written."""


class StoreUnreachable(StoreUnavailable):
    """Nobody answers at the store's address, or a server that serves nobody for the moment: it starts, stops, fails over or
    has too many sessions. The same call may succeed later without any change by an operator."""


class StoreFull(StoreUnavailable):
    """The store's disk has no space left. Nothing was written; everything is accepted again once there is space."""


class StoreCorrupted(StoreError):
    """The store's file or schema is damaged or not Tocsin's. An operator has to act."""


class StoreLocked(StoreError):
    """Another process uses this data folder."""


class SchemaNotMigrated(StoreUnavailable):
    """The schema is of an earlier release, and was opened only for administration, which does not migrate it."""


class SchemaTooNew(StoreError):
    """The schema belongs to a newer release than this one."""


class RecordUndecodable(TocsinError):
    """A stored timer record can't be decoded. Its row is suspended unchanged, never dropped."""


class RecordTooNew(RecordUndecodable):
    """A stored record has a format of a newer release. This node must leave the shard to a node of that release."""


class ConfigError(TocsinError):
    """A setting is invalid, or settings contradict one another."""

    code = "INVALID_CONFIG"
