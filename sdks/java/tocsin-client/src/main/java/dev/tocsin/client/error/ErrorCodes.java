// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.error;

import java.util.Map;
import java.util.function.Function;

/** The exception of each error code. */
final class ErrorCodes {
    static final Map<String, Function<Problem, ApiException>> EXCEPTIONS = Map.ofEntries(
            Map.entry("INVALID_INPUT", InvalidInputException::new),
            Map.entry("MALFORMED_BODY", MalformedBodyException::new),
            Map.entry("MALFORMED_REQUEST", MalformedRequestException::new),
            Map.entry("TOO_MANY_TAGS", TooManyTagsException::new),
            Map.entry("UNAUTHENTICATED", UnauthenticatedException::new),
            Map.entry("FORBIDDEN", ForbiddenException::new),
            Map.entry("TIMER_NOT_FOUND", TimerNotFoundException::new),
            Map.entry("NAMESPACE_NOT_FOUND", NamespaceNotFoundException::new),
            Map.entry("FLOW_NOT_FOUND", FlowNotFoundException::new),
            Map.entry("CALENDAR_NOT_FOUND", CalendarNotFoundException::new),
            Map.entry("MONITOR_NOT_FOUND", MonitorNotFoundException::new),
            Map.entry("SERVICE_CALL_NOT_FOUND", ServiceCallNotFoundException::new),
            Map.entry("KEY_NOT_FOUND", KeyNotFoundException::new),
            Map.entry("SCHEDULE_NOT_FOUND", ScheduleNotFoundException::new),
            Map.entry("ROUTE_NOT_FOUND", RouteNotFoundException::new),
            Map.entry("METHOD_NOT_ALLOWED", MethodNotAllowedException::new),
            Map.entry("REQUEST_TIMEOUT", RequestTimeoutException::new),
            Map.entry("CONFLICT", ConflictException::new),
            Map.entry("VERSION_CONFLICT", VersionConflictException::new),
            Map.entry("TIMER_NOT_PENDING", TimerNotPendingException::new),
            Map.entry("TIMER_PENDING", TimerPendingException::new),
            Map.entry("TIMER_NOT_REPLAYABLE", TimerNotReplayableException::new),
            Map.entry("TIMER_EXISTS", TimerExistsException::new),
            Map.entry("COLLECTION_FULL", CollectionFullException::new),
            Map.entry("SCHEDULE_ENDED", ScheduleEndedException::new),
            Map.entry("BACKLOG_FULL", BacklogFullException::new),
            Map.entry("CLOCK_HALTED", ClockHaltedException::new),
            Map.entry("ROTATION_PENDING", RotationPendingException::new),
            Map.entry("TOO_MANY_KEYS", TooManyKeysException::new),
            Map.entry("TOO_MANY_FLOWS", TooManyFlowsException::new),
            Map.entry("TOO_MANY_CALENDARS", TooManyCalendarsException::new),
            Map.entry("CALENDAR_IN_USE", CalendarInUseException::new),
            Map.entry("JOB_NOT_FOUND", JobNotFoundException::new),
            Map.entry("JOB_RUNNING", JobRunningException::new),
            Map.entry("JOB_ENDED", JobEndedException::new),
            Map.entry("NAMESPACE_EXISTS", NamespaceExistsException::new),
            Map.entry("NAMESPACE_DELETING", NamespaceDeletingException::new),
            Map.entry("NAMESPACE_NOT_EMPTY", NamespaceNotEmptyException::new),
            Map.entry("SERVICE_CALL_NOT_SCHEDULED", ServiceCallNotScheduledException::new),
            Map.entry("SERVICE_CALL_NOT_FAILED", ServiceCallNotFailedException::new),
            Map.entry("IDEMPOTENCY_CONFLICT", IdempotencyConflictException::new),
            Map.entry("BODY_TOO_LARGE", BodyTooLargeException::new),
            Map.entry("PAYLOAD_TOO_LARGE", PayloadTooLargeException::new),
            Map.entry("UNSUPPORTED_MEDIA_TYPE", UnsupportedMediaTypeException::new),
            Map.entry("OVERLOADED", OverloadedException::new),
            Map.entry("QUOTA_EXCEEDED", QuotaExceededException::new),
            Map.entry("TOO_MANY_FAILURES", TooManyFailuresException::new),
            Map.entry("HEADERS_TOO_LARGE", HeadersTooLargeException::new),
            Map.entry("INTERNAL", InternalException::new),
            Map.entry("SHARD_UNAVAILABLE", ShardUnavailableException::new),
            Map.entry("REQUEST_EXPIRED", RequestExpiredException::new),
            Map.entry("NO_ROOM_FOR_BODY", NoRoomForBodyException::new),
            Map.entry("NOT_READY", NotReadyException::new),
            Map.entry("STORE_FAILURE", StoreFailureException::new),
            Map.entry("BROKER_UNAVAILABLE", BrokerUnavailableException::new),
            Map.entry("COMMAND_UNANSWERED", CommandUnansweredException::new),
            Map.entry("COMMAND_FAILED", CommandFailedException::new));

    private ErrorCodes() {}
}