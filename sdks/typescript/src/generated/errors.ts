// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
/** A class for each error code. */

import {
  type ApiErrorClass,
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  Overloaded,
  ServerError,
  Unauthenticated,
  Unavailable,
} from "../error-bases.js";

/** MALFORMED_BODY: The body is not JSON, or not UTF-8. Nothing was written. */
export class MalformedBody extends InvalidInput {
  static {
    MalformedBody.prototype.name = "MalformedBody";
  }
}

/** MALFORMED_REQUEST: The data received on the connection is not HTTP/1.1. The server closes the connection. */
export class MalformedRequest extends InvalidInput {
  static {
    MalformedRequest.prototype.name = "MalformedRequest";
  }
}

/** TOO_MANY_TAGS: The service call already has the maximum number of tags. */
export class TooManyTags extends InvalidInput {
  static {
    TooManyTags.prototype.name = "TooManyTags";
  }
}

/** TIMER_NOT_FOUND: The namespace has no pending timer with this id, and no finished one that is still retained. */
export class TimerNotFound extends NotFound {
  static {
    TimerNotFound.prototype.name = "TimerNotFound";
  }
}

/** NAMESPACE_NOT_FOUND: No namespace has this name. */
export class NamespaceNotFound extends NotFound {
  static {
    NamespaceNotFound.prototype.name = "NamespaceNotFound";
  }
}

/** FLOW_NOT_FOUND: The namespace has no rule of flows with exactly this match. */
export class FlowNotFound extends NotFound {
  static {
    FlowNotFound.prototype.name = "FlowNotFound";
  }
}

/** CREDENTIAL_NOT_FOUND: The namespace has no credential of this name. */
export class CredentialNotFound extends NotFound {
  static {
    CredentialNotFound.prototype.name = "CredentialNotFound";
  }
}

/** NOT_AN_ISSUER: This server signs no JWTs for receivers. */
export class NotAnIssuer extends NotFound {
  static {
    NotAnIssuer.prototype.name = "NotAnIssuer";
  }
}

/** CALENDAR_NOT_FOUND: The namespace has no calendar of this name. */
export class CalendarNotFound extends NotFound {
  static {
    CalendarNotFound.prototype.name = "CalendarNotFound";
  }
}

/** MONITOR_NOT_FOUND: The namespace has no monitor of this id; or none has this ping URL. */
export class MonitorNotFound extends NotFound {
  static {
    MonitorNotFound.prototype.name = "MonitorNotFound";
  }
}

/** SERVICE_CALL_NOT_FOUND: The tenant has no service call with this id, or the call is no longer retained. */
export class ServiceCallNotFound extends NotFound {
  static {
    ServiceCallNotFound.prototype.name = "ServiceCallNotFound";
  }
}

/** KEY_NOT_FOUND: No API key has this id, or the key is outside the scope of the caller's key. */
export class KeyNotFound extends NotFound {
  static {
    KeyNotFound.prototype.name = "KeyNotFound";
  }
}

/** SCHEDULE_NOT_FOUND: The namespace has no schedule with this id, live or ended and still retained. */
export class ScheduleNotFound extends NotFound {
  static {
    ScheduleNotFound.prototype.name = "ScheduleNotFound";
  }
}

/**
 * ROUTE_NOT_FOUND: No operation has this path, or this server has no service agent or no inbox, of which the
 * operation is.
 */
export class RouteNotFound extends NotFound {
  static {
    RouteNotFound.prototype.name = "RouteNotFound";
  }
}

/** METHOD_NOT_ALLOWED: The path exists, but does not accept this method. */
export class MethodNotAllowed extends InvalidInput {
  static {
    MethodNotAllowed.prototype.name = "MethodNotAllowed";
  }
}

/**
 * REQUEST_TIMEOUT: The request did not arrive completely within the time limit. The server closes the
 * connection.
 */
export class RequestTimeout extends Unavailable {
  static {
    RequestTimeout.prototype.name = "RequestTimeout";
  }
}

/**
 * VERSION_CONFLICT: The object has not the version in the request's expectedVersion: somebody else has changed,
 * created or deleted it since it was read. Nothing was written.
 */
export class VersionConflict extends Conflict {
  static {
    VersionConflict.prototype.name = "VersionConflict";
  }
}

/** TIMER_NOT_PENDING: The timer has finished: it can no longer be changed or canceled. */
export class TimerNotPending extends Conflict {
  static {
    TimerNotPending.prototype.name = "TimerNotPending";
  }
}

/** TIMER_PENDING: The timer has not finished, so there is nothing to replay. Nothing was written. */
export class TimerPending extends Conflict {
  static {
    TimerPending.prototype.name = "TimerPending";
  }
}

/**
 * TIMER_NOT_REPLAYABLE: What is kept of the finished timer is not enough to fire it again: its namespace keeps
 * no history, so that only its idempotency keys are left, or its record can't be read. Nothing was written.
 */
export class TimerNotReplayable extends Conflict {
  static {
    TimerNotReplayable.prototype.name = "TimerNotReplayable";
  }
}

/** TIMER_EXISTS: A timer with this id exists, and the request has onConflict: "reject". Nothing was written. */
export class TimerExists extends Conflict {
  static {
    TimerExists.prototype.name = "TimerExists";
  }
}

/**
 * COLLECTION_FULL: The pending timer of this id, which was created with onConflict: "debounce" and collect, has
 * no room for another payload: it has as many as collect allows, or they would have more than 100 KiB together.
 * Nothing was written.
 */
export class CollectionFull extends Conflict {
  static {
    CollectionFull.prototype.name = "CollectionFull";
  }
}

/** SCHEDULE_ENDED: The schedule was deleted, or has no more instants: it can no longer be changed or fired. */
export class ScheduleEnded extends Conflict {
  static {
    ScheduleEnded.prototype.name = "ScheduleEnded";
  }
}

/**
 * BACKLOG_FULL: Too many triggers (at most 100) or backfills (at most 10) of the schedule are waiting. Nothing
 * was written.
 */
export class BacklogFull extends Conflict {
  static {
    BacklogFull.prototype.name = "BacklogFull";
  }
}

/**
 * CLOCK_HALTED: Only from tocsin dev: the clock did not reach the instant asked for, because more than 10,000
 * instants were due on the way, or what was due at one of them did not finish. The clock shows an earlier
 * instant.
 */
export class ClockHalted extends Conflict {
  static {
    ClockHalted.prototype.name = "ClockHalted";
  }
}

/**
 * ROTATION_PENDING: The secret was rotated recently, and the previous secret still signs during the grace
 * period. Nothing was changed.
 */
export class RotationPending extends Conflict {
  static {
    RotationPending.prototype.name = "RotationPending";
  }
}

/** TOO_MANY_KEYS: The maximum number of API keys exists. Nothing was written. */
export class TooManyKeys extends Conflict {
  static {
    TooManyKeys.prototype.name = "TooManyKeys";
  }
}

/** TOO_MANY_FLOWS: The maximum number of rules of flows exists in the namespace. Nothing was written. */
export class TooManyFlows extends Conflict {
  static {
    TooManyFlows.prototype.name = "TooManyFlows";
  }
}

/** TOO_MANY_CALENDARS: The maximum number of calendars exists in the namespace. Nothing was written. */
export class TooManyCalendars extends Conflict {
  static {
    TooManyCalendars.prototype.name = "TooManyCalendars";
  }
}

/** TOO_MANY_CREDENTIALS: The maximum number of credentials exists in the namespace. Nothing was written. */
export class TooManyCredentials extends Conflict {
  static {
    TooManyCredentials.prototype.name = "TooManyCredentials";
  }
}

/** CALENDAR_IN_USE: Schedules that have not ended name the calendar. Nothing was written. */
export class CalendarInUse extends Conflict {
  static {
    CalendarInUse.prototype.name = "CalendarInUse";
  }
}

/**
 * JOB_NOT_FOUND: No job has this id, or the key has no access to its namespace. A job is kept for 30 days after
 * its end.
 */
export class JobNotFound extends NotFound {
  static {
    JobNotFound.prototype.name = "JobNotFound";
  }
}

/**
 * JOB_RUNNING: A job that has not ended, running or paused, may change the same timers or schedules. Nothing was
 * written.
 */
export class JobRunning extends Conflict {
  static {
    JobRunning.prototype.name = "JobRunning";
  }
}

/** JOB_ENDED: The job has ended, so it can't be paused, resumed or canceled, or get another rate. */
export class JobEnded extends Conflict {
  static {
    JobEnded.prototype.name = "JobEnded";
  }
}

/** NAMESPACE_EXISTS: A namespace with this name exists. */
export class NamespaceExists extends Conflict {
  static {
    NamespaceExists.prototype.name = "NamespaceExists";
  }
}

/**
 * NAMESPACE_DELETING: A job deletes the namespace. Until it has ended, nothing in it can be created or changed.
 * Nothing was written.
 */
export class NamespaceDeleting extends Conflict {
  static {
    NamespaceDeleting.prototype.name = "NamespaceDeleting";
  }
}

/**
 * NAMESPACE_NOT_EMPTY: Timers or schedules are pending in the namespace, which its deletion would cancel.
 * Nothing was written.
 */
export class NamespaceNotEmpty extends Conflict {
  static {
    NamespaceNotEmpty.prototype.name = "NamespaceNotEmpty";
  }
}

/** SERVICE_CALL_NOT_SCHEDULED: The service call has started or finished: it can no longer be deleted. */
export class ServiceCallNotScheduled extends Conflict {
  static {
    ServiceCallNotScheduled.prototype.name = "ServiceCallNotScheduled";
  }
}

/**
 * SERVICE_CALL_NOT_FAILED: The service call has not failed, so it can't be retried; the message states its
 * state. Nothing was written.
 */
export class ServiceCallNotFailed extends Conflict {
  static {
    ServiceCallNotFailed.prototype.name = "ServiceCallNotFailed";
  }
}

/**
 * IDEMPOTENCY_CONFLICT: An earlier request used the same idempotency key, or service call id, with different
 * content. Nothing was written.
 */
export class IdempotencyConflict extends Conflict {
  static {
    IdempotencyConflict.prototype.name = "IdempotencyConflict";
  }
}

/** BODY_TOO_LARGE: The body is larger than the operation accepts. */
export class BodyTooLarge extends InvalidInput {
  static {
    BodyTooLarge.prototype.name = "BodyTooLarge";
  }
}

/**
 * PAYLOAD_TOO_LARGE: The timer's payload, or the body of the service call's request, exceeds its limit, or the
 * timer is larger than the server's database can store. The request has no other error.
 */
export class PayloadTooLarge extends InvalidInput {
  static {
    PayloadTooLarge.prototype.name = "PayloadTooLarge";
  }
}

/** UNSUPPORTED_MEDIA_TYPE: The body is not declared as JSON in UTF-8, or is compressed. */
export class UnsupportedMediaType extends InvalidInput {
  static {
    UnsupportedMediaType.prototype.name = "UnsupportedMediaType";
  }
}

/**
 * QUOTA_EXCEEDED: A quota of the namespace has no room for the request: too many timers are pending (pending),
 * too many were created in the last second (createsPerSecond), or the payload is too large (payloadBytes).
 * Nothing was written.
 */
export class QuotaExceeded extends Overloaded {
  static {
    QuotaExceeded.prototype.name = "QuotaExceeded";
  }
}

/** TOO_MANY_FAILURES: This address has sent too many invalid API keys. */
export class TooManyFailures extends Overloaded {
  static {
    TooManyFailures.prototype.name = "TooManyFailures";
  }
}

/** HEADERS_TOO_LARGE: The request has too many headers, or its headers are too large. */
export class HeadersTooLarge extends InvalidInput {
  static {
    HeadersTooLarge.prototype.name = "HeadersTooLarge";
  }
}

/** INTERNAL: The server failed unexpectedly. Whether anything was written is unknown. */
export class Internal extends ServerError {
  static {
    Internal.prototype.name = "Internal";
  }
}

/** SHARD_UNAVAILABLE: The timer's shard temporarily has no owner, or the outcome of the write is unknown. */
export class ShardUnavailable extends Unavailable {
  static {
    ShardUnavailable.prototype.name = "ShardUnavailable";
  }
}

/** REQUEST_EXPIRED: The request exceeded its time budget while it waited. Nothing was written. */
export class RequestExpired extends Unavailable {
  static {
    RequestExpired.prototype.name = "RequestExpired";
  }
}

/** NO_ROOM_FOR_BODY: Request bodies that are still arriving use all the memory reserved for them. */
export class NoRoomForBody extends Unavailable {
  static {
    NoRoomForBody.prototype.name = "NoRoomForBody";
  }
}

/**
 * INBOX_UNAVAILABLE: The inbox's database can't be asked, lacks the table, or did not answer in time. A replay
 * or deletion may have been done in part.
 */
export class InboxUnavailable extends Unavailable {
  static {
    InboxUnavailable.prototype.name = "InboxUnavailable";
  }
}

/** NOT_READY: /readyz only: the node should receive no traffic now. errors lists the reasons. */
export class NotReady extends Unavailable {
  static {
    NotReady.prototype.name = "NotReady";
  }
}

/** STORE_FAILURE: The store failed. A write may have taken effect. */
export class StoreFailure extends Unavailable {
  static {
    StoreFailure.prototype.name = "StoreFailure";
  }
}

/**
 * BROKER_UNAVAILABLE: The service agent cannot reach its message broker. The broker may have accepted the
 * command.
 */
export class BrokerUnavailable extends Unavailable {
  static {
    BrokerUnavailable.prototype.name = "BrokerUnavailable";
  }
}

/** COMMAND_UNANSWERED: The service agent did not respond in time. The command may have taken effect. */
export class CommandUnanswered extends Unavailable {
  static {
    CommandUnanswered.prototype.name = "CommandUnanswered";
  }
}

/** COMMAND_FAILED: The service agent failed to handle the command. It may have taken effect. */
export class CommandFailed extends Unavailable {
  static {
    CommandFailed.prototype.name = "CommandFailed";
  }
}

/** By the code in the answer's `error`. */
export const CODES: Readonly<Record<string, ApiErrorClass>> = {
  INVALID_INPUT: InvalidInput,
  MALFORMED_BODY: MalformedBody,
  MALFORMED_REQUEST: MalformedRequest,
  TOO_MANY_TAGS: TooManyTags,
  UNAUTHENTICATED: Unauthenticated,
  FORBIDDEN: Forbidden,
  TIMER_NOT_FOUND: TimerNotFound,
  NAMESPACE_NOT_FOUND: NamespaceNotFound,
  FLOW_NOT_FOUND: FlowNotFound,
  CREDENTIAL_NOT_FOUND: CredentialNotFound,
  NOT_AN_ISSUER: NotAnIssuer,
  CALENDAR_NOT_FOUND: CalendarNotFound,
  MONITOR_NOT_FOUND: MonitorNotFound,
  SERVICE_CALL_NOT_FOUND: ServiceCallNotFound,
  KEY_NOT_FOUND: KeyNotFound,
  SCHEDULE_NOT_FOUND: ScheduleNotFound,
  ROUTE_NOT_FOUND: RouteNotFound,
  METHOD_NOT_ALLOWED: MethodNotAllowed,
  REQUEST_TIMEOUT: RequestTimeout,
  CONFLICT: Conflict,
  VERSION_CONFLICT: VersionConflict,
  TIMER_NOT_PENDING: TimerNotPending,
  TIMER_PENDING: TimerPending,
  TIMER_NOT_REPLAYABLE: TimerNotReplayable,
  TIMER_EXISTS: TimerExists,
  COLLECTION_FULL: CollectionFull,
  SCHEDULE_ENDED: ScheduleEnded,
  BACKLOG_FULL: BacklogFull,
  CLOCK_HALTED: ClockHalted,
  ROTATION_PENDING: RotationPending,
  TOO_MANY_KEYS: TooManyKeys,
  TOO_MANY_FLOWS: TooManyFlows,
  TOO_MANY_CALENDARS: TooManyCalendars,
  TOO_MANY_CREDENTIALS: TooManyCredentials,
  CALENDAR_IN_USE: CalendarInUse,
  JOB_NOT_FOUND: JobNotFound,
  JOB_RUNNING: JobRunning,
  JOB_ENDED: JobEnded,
  NAMESPACE_EXISTS: NamespaceExists,
  NAMESPACE_DELETING: NamespaceDeleting,
  NAMESPACE_NOT_EMPTY: NamespaceNotEmpty,
  SERVICE_CALL_NOT_SCHEDULED: ServiceCallNotScheduled,
  SERVICE_CALL_NOT_FAILED: ServiceCallNotFailed,
  IDEMPOTENCY_CONFLICT: IdempotencyConflict,
  BODY_TOO_LARGE: BodyTooLarge,
  PAYLOAD_TOO_LARGE: PayloadTooLarge,
  UNSUPPORTED_MEDIA_TYPE: UnsupportedMediaType,
  OVERLOADED: Overloaded,
  QUOTA_EXCEEDED: QuotaExceeded,
  TOO_MANY_FAILURES: TooManyFailures,
  HEADERS_TOO_LARGE: HeadersTooLarge,
  INTERNAL: Internal,
  SHARD_UNAVAILABLE: ShardUnavailable,
  REQUEST_EXPIRED: RequestExpired,
  NO_ROOM_FOR_BODY: NoRoomForBody,
  INBOX_UNAVAILABLE: InboxUnavailable,
  NOT_READY: NotReady,
  STORE_FAILURE: StoreFailure,
  BROKER_UNAVAILABLE: BrokerUnavailable,
  COMMAND_UNANSWERED: CommandUnanswered,
  COMMAND_FAILED: CommandFailed,
};
