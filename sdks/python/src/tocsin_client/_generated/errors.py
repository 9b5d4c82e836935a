# Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
"""A class for each error code."""

from __future__ import annotations

from tocsin_client._error_bases import (
    ApiError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Overloaded,
    ServerError,
    Unauthenticated,
    Unavailable,
)


class MalformedBody(InvalidInput):
    """MALFORMED_BODY: The body is not JSON, or not UTF-8. Nothing was written."""


class MalformedRequest(InvalidInput):
    """MALFORMED_REQUEST: The data received on the connection is not HTTP/1.1. The server closes the connection."""


class TooManyTags(InvalidInput):
    """TOO_MANY_TAGS: The service call already has the maximum number of tags."""


class TimerNotFound(NotFound):
    """TIMER_NOT_FOUND: The namespace has no pending timer with this id, and no finished one that is still retained."""


class NamespaceNotFound(NotFound):
    """NAMESPACE_NOT_FOUND: No namespace has this name."""


class FlowNotFound(NotFound):
    """FLOW_NOT_FOUND: The namespace has no rule of flows with exactly this match."""


class CredentialNotFound(NotFound):
    """CREDENTIAL_NOT_FOUND: The namespace has no credential of this name."""


class NotAnIssuer(NotFound):
    """NOT_AN_ISSUER: This server signs no JWTs for receivers."""


class CalendarNotFound(NotFound):
    """CALENDAR_NOT_FOUND: The namespace has no calendar of this name."""


class MonitorNotFound(NotFound):
    """MONITOR_NOT_FOUND: The namespace has no monitor of this id; or none has this ping URL."""


class ServiceCallNotFound(NotFound):
    """SERVICE_CALL_NOT_FOUND: The tenant has no service call with this id, or the call is no longer retained."""


class KeyNotFound(NotFound):
    """KEY_NOT_FOUND: No API key has this id, or the key is outside the scope of the caller's key."""


class ScheduleNotFound(NotFound):
    """SCHEDULE_NOT_FOUND: The namespace has no schedule with this id, live or ended and still retained."""


class RouteNotFound(NotFound):
    """ROUTE_NOT_FOUND: No operation has this path, or this server has no service agent or no inbox, of which the
    operation is."""


class MethodNotAllowed(InvalidInput):
    """METHOD_NOT_ALLOWED: The path exists, but does not accept this method."""


class RequestTimeout(Unavailable):
    """REQUEST_TIMEOUT: The request did not arrive completely within the time limit. The server closes the
    connection."""


class VersionConflict(Conflict):
    """VERSION_CONFLICT: The object has not the version in the request's expectedVersion: somebody else has changed,
    created or deleted it since it was read. Nothing was written."""


class TimerNotPending(Conflict):
    """TIMER_NOT_PENDING: The timer has finished: it can no longer be changed or canceled."""


class TimerPending(Conflict):
    """TIMER_PENDING: The timer has not finished, so there is nothing to replay. Nothing was written."""


class TimerNotReplayable(Conflict):
    """TIMER_NOT_REPLAYABLE: What is kept of the finished timer is not enough to fire it again: its namespace keeps no
    history, so that only its idempotency keys are left, or its record can't be read. Nothing was written."""


class TimerExists(Conflict):
    """TIMER_EXISTS: A timer with this id exists, and the request has onConflict: 'reject'. Nothing was written."""


class CollectionFull(Conflict):
    """COLLECTION_FULL: The pending timer of this id, which was created with onConflict: 'debounce' and collect, has no
    room for another payload: it has as many as collect allows, or they would have more than 100 KiB together. Nothing
    was written."""


class ScheduleEnded(Conflict):
    """SCHEDULE_ENDED: The schedule was deleted, or has no more instants: it can no longer be changed or fired."""


class BacklogFull(Conflict):
    """BACKLOG_FULL: Too many triggers (at most 100) or backfills (at most 10) of the schedule are waiting. Nothing was
    written."""


class ClockHalted(Conflict):
    """CLOCK_HALTED: Only from tocsin dev: the clock did not reach the instant asked for, because more than 10,000
    instants were due on the way, or what was due at one of them did not finish. The clock shows an earlier instant."""


class RotationPending(Conflict):
    """ROTATION_PENDING: The secret was rotated recently, and the previous secret still signs during the grace period.
    Nothing was changed."""


class TooManyKeys(Conflict):
    """TOO_MANY_KEYS: The maximum number of API keys exists. Nothing was written."""


class TooManyFlows(Conflict):
    """TOO_MANY_FLOWS: The maximum number of rules of flows exists in the namespace. Nothing was written."""


class TooManyCalendars(Conflict):
    """TOO_MANY_CALENDARS: The maximum number of calendars exists in the namespace. Nothing was written."""


class TooManyCredentials(Conflict):
    """TOO_MANY_CREDENTIALS: The maximum number of credentials exists in the namespace. Nothing was written."""


class CalendarInUse(Conflict):
    """CALENDAR_IN_USE: Schedules that have not ended name the calendar. Nothing was written."""


class JobNotFound(NotFound):
    """JOB_NOT_FOUND: No job has this id, or the key has no access to its namespace. A job is kept for 30 days after
    its end."""


class JobRunning(Conflict):
    """JOB_RUNNING: A job that has not ended, running or paused, may change the same timers or schedules. Nothing was
    written."""


class JobEnded(Conflict):
    """JOB_ENDED: The job has ended, so it can't be paused, resumed or canceled, or get another rate."""


class NamespaceExists(Conflict):
    """NAMESPACE_EXISTS: A namespace with this name exists."""


class NamespaceDeleting(Conflict):
    """NAMESPACE_DELETING: A job deletes the namespace. Until it has ended, nothing in it can be created or changed.
    Nothing was written."""


class NamespaceNotEmpty(Conflict):
    """NAMESPACE_NOT_EMPTY: Timers or schedules are pending in the namespace, which its deletion would cancel. Nothing
    was written."""


class ServiceCallNotScheduled(Conflict):
    """SERVICE_CALL_NOT_SCHEDULED: The service call has started or finished: it can no longer be deleted."""


class ServiceCallNotFailed(Conflict):
    """SERVICE_CALL_NOT_FAILED: The service call has not failed, so it can't be retried; the message states its state.
    Nothing was written."""


class IdempotencyConflict(Conflict):
    """IDEMPOTENCY_CONFLICT: An earlier request used the same idempotency key, or service call id, with different
    content. Nothing was written."""


class BodyTooLarge(InvalidInput):
    """BODY_TOO_LARGE: The body is larger than the operation accepts."""


class PayloadTooLarge(InvalidInput):
    """PAYLOAD_TOO_LARGE: The timer's payload, or the body of the service call's request, exceeds its limit, or the
    timer is larger than the server's database can store. The request has no other error."""


class UnsupportedMediaType(InvalidInput):
    """UNSUPPORTED_MEDIA_TYPE: The body is not declared as JSON in UTF-8, or is compressed."""


class QuotaExceeded(Overloaded):
    """QUOTA_EXCEEDED: A quota of the namespace has no room for the request: too many timers are pending (pending), too
    many were created in the last second (createsPerSecond), or the payload is too large (payloadBytes). Nothing was
    written."""


class TooManyFailures(Overloaded):
    """TOO_MANY_FAILURES: This address has sent too many invalid API keys."""


class HeadersTooLarge(InvalidInput):
    """HEADERS_TOO_LARGE: The request has too many headers, or its headers are too large."""


class Internal(ServerError):
    """INTERNAL: The server failed unexpectedly. Whether anything was written is unknown."""


class ShardUnavailable(Unavailable):
    """SHARD_UNAVAILABLE: The timer's shard temporarily has no owner, or the outcome of the write is unknown."""


class RequestExpired(Unavailable):
    """REQUEST_EXPIRED: The request exceeded its time budget while it waited. Nothing was written."""


class NoRoomForBody(Unavailable):
    """NO_ROOM_FOR_BODY: Request bodies that are still arriving use all the memory reserved for them."""


class InboxUnavailable(Unavailable):
    """INBOX_UNAVAILABLE: The inbox's database can't be asked, lacks the table, or did not answer in time. A replay or
    deletion may have been done in part."""


class NotReady(Unavailable):
    """NOT_READY: /readyz only: the node should receive no traffic now. errors lists the reasons."""


class StoreFailure(Unavailable):
    """STORE_FAILURE: The store failed. A write may have taken effect."""


class BrokerUnavailable(Unavailable):
    """BROKER_UNAVAILABLE: The service agent cannot reach its message broker. The broker may have accepted the
    command."""


class CommandUnanswered(Unavailable):
    """COMMAND_UNANSWERED: The service agent did not respond in time. The command may have taken effect."""


class CommandFailed(Unavailable):
    """COMMAND_FAILED: The service agent failed to handle the command. It may have taken effect."""


#: By the code in the answer's `error`.
CODES: dict[str, type[ApiError]] = {
    "INVALID_INPUT": InvalidInput,
    "MALFORMED_BODY": MalformedBody,
    "MALFORMED_REQUEST": MalformedRequest,
    "TOO_MANY_TAGS": TooManyTags,
    "UNAUTHENTICATED": Unauthenticated,
    "FORBIDDEN": Forbidden,
    "TIMER_NOT_FOUND": TimerNotFound,
    "NAMESPACE_NOT_FOUND": NamespaceNotFound,
    "FLOW_NOT_FOUND": FlowNotFound,
    "CREDENTIAL_NOT_FOUND": CredentialNotFound,
    "NOT_AN_ISSUER": NotAnIssuer,
    "CALENDAR_NOT_FOUND": CalendarNotFound,
    "MONITOR_NOT_FOUND": MonitorNotFound,
    "SERVICE_CALL_NOT_FOUND": ServiceCallNotFound,
    "KEY_NOT_FOUND": KeyNotFound,
    "SCHEDULE_NOT_FOUND": ScheduleNotFound,
    "ROUTE_NOT_FOUND": RouteNotFound,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "REQUEST_TIMEOUT": RequestTimeout,
    "CONFLICT": Conflict,
    "VERSION_CONFLICT": VersionConflict,
    "TIMER_NOT_PENDING": TimerNotPending,
    "TIMER_PENDING": TimerPending,
    "TIMER_NOT_REPLAYABLE": TimerNotReplayable,
    "TIMER_EXISTS": TimerExists,
    "COLLECTION_FULL": CollectionFull,
    "SCHEDULE_ENDED": ScheduleEnded,
    "BACKLOG_FULL": BacklogFull,
    "CLOCK_HALTED": ClockHalted,
    "ROTATION_PENDING": RotationPending,
    "TOO_MANY_KEYS": TooManyKeys,
    "TOO_MANY_FLOWS": TooManyFlows,
    "TOO_MANY_CALENDARS": TooManyCalendars,
    "TOO_MANY_CREDENTIALS": TooManyCredentials,
    "CALENDAR_IN_USE": CalendarInUse,
    "JOB_NOT_FOUND": JobNotFound,
    "JOB_RUNNING": JobRunning,
    "JOB_ENDED": JobEnded,
    "NAMESPACE_EXISTS": NamespaceExists,
    "NAMESPACE_DELETING": NamespaceDeleting,
    "NAMESPACE_NOT_EMPTY": NamespaceNotEmpty,
    "SERVICE_CALL_NOT_SCHEDULED": ServiceCallNotScheduled,
    "SERVICE_CALL_NOT_FAILED": ServiceCallNotFailed,
    "IDEMPOTENCY_CONFLICT": IdempotencyConflict,
    "BODY_TOO_LARGE": BodyTooLarge,
    "PAYLOAD_TOO_LARGE": PayloadTooLarge,
    "UNSUPPORTED_MEDIA_TYPE": UnsupportedMediaType,
    "OVERLOADED": Overloaded,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "TOO_MANY_FAILURES": TooManyFailures,
    "HEADERS_TOO_LARGE": HeadersTooLarge,
    "INTERNAL": Internal,
    "SHARD_UNAVAILABLE": ShardUnavailable,
    "REQUEST_EXPIRED": RequestExpired,
    "NO_ROOM_FOR_BODY": NoRoomForBody,
    "INBOX_UNAVAILABLE": InboxUnavailable,
    "NOT_READY": NotReady,
    "STORE_FAILURE": StoreFailure,
    "BROKER_UNAVAILABLE": BrokerUnavailable,
    "COMMAND_UNANSWERED": CommandUnanswered,
    "COMMAND_FAILED": CommandFailed,
}

__all__ = [
    "CODES",
    "BacklogFull",
    "BodyTooLarge",
    "BrokerUnavailable",
    "CalendarInUse",
    "CalendarNotFound",
    "ClockHalted",
    "CollectionFull",
    "CommandFailed",
    "CommandUnanswered",
    "CredentialNotFound",
    "FlowNotFound",
    "HeadersTooLarge",
    "IdempotencyConflict",
    "InboxUnavailable",
    "Internal",
    "JobEnded",
    "JobNotFound",
    "JobRunning",
    "KeyNotFound",
    "MalformedBody",
    "MalformedRequest",
    "MethodNotAllowed",
    "MonitorNotFound",
    "NamespaceDeleting",
    "NamespaceExists",
    "NamespaceNotEmpty",
    "NamespaceNotFound",
    "NoRoomForBody",
    "NotAnIssuer",
    "NotReady",
    "PayloadTooLarge",
    "QuotaExceeded",
    "RequestExpired",
    "RequestTimeout",
    "RotationPending",
    "RouteNotFound",
    "ScheduleEnded",
    "ScheduleNotFound",
    "ServiceCallNotFailed",
    "ServiceCallNotFound",
    "ServiceCallNotScheduled",
    "ShardUnavailable",
    "StoreFailure",
    "TimerExists",
    "TimerNotFound",
    "TimerNotPending",
    "TimerNotReplayable",
    "TimerPending",
    "TooManyCalendars",
    "TooManyCredentials",
    "TooManyFailures",
    "TooManyFlows",
    "TooManyKeys",
    "TooManyTags",
    "UnsupportedMediaType",
    "VersionConflict",
]
