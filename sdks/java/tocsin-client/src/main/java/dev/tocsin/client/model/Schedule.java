// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A schedule: its definition, and where it stands.
 *
 * @param namespace The namespace's name.
 * @param id The schedule's id, unique among its namespace's schedules.
 * @param scheduleUuid Derived from namespace and id.
 * @param shardId The shard that holds the schedule.
 * @param status active, paused, or ended: it has no more instants, or was deleted.
 * @param sentence When it runs, in words.
 * @param nextInstants Its next three instants.
 * @param counts Its ended occurrences by outcome.
 * @param missed Instants that did not fire, by reason: late (they passed before it could fire), overlap (the
 * previous occurrence had not finished), window (older than the catch-up window), paused, excluded (by
 * a calendar, or skipped by hand).
 * @param triggersWaiting Triggers that wait to be fired.
 * @param backfillsWaiting Backfills that are not complete.
 * @param replaysWaiting Failed occurrences that wait to be replayed.
 * @param catchUp What becomes of instants that pass while it cannot fire.
 * @param jitter By how much each instant is delayed at most.
 * @param pauseAfterFailures Failed occurrences in a row that pause it; 0: never.
 * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
 * @param skip Calendars: no instant on a date of any of them fires.
 * @param onSkipped What becomes of instants that its calendars exclude.
 * @param skippedInstants Instants to come that are skipped by hand.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param method The HTTP method of the callback.
 * @param headers Additional headers of the callback; secret values are [redacted].
 * @param callbackTimeoutSeconds Timeout of one attempt, in seconds.
 * @param tags Labels to filter lists by.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param version 1, and one more with each change by a client.
 * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
 * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly. Null if absent.
 * @param timeZone The time zone of cron. Null if absent.
 * @param every An interval of 1s to 366d, by elapsed time, instead of cron. Null if absent.
 * @param anchor From which instant every counts. Null if absent.
 * @param startAt No instant is earlier than this. Null if absent.
 * @param endAt All instants are earlier than this. Null if absent.
 * @param maxOccurrences How many instants it has. Null if absent.
 * @param catchUpWindow Instants that are later than this are missed; absent while the default applies. Null if absent.
 * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
 * expired then, any other as failed. Null if absent.
 * @param description What the schedule is for. Null if absent.
 * @param flowKey The flow that limits its attempts. Null if absent.
 * @param credential The credential that its requests have. Null if absent.
 * @param payload Absent if the schedule has a body. Null if absent.
 * @param body The whole body of the callback, instead of the envelope with the payload. Null if absent.
 * @param retryPolicy The schedule's own policy; absent while the namespace's applies. Null if absent.
 * @param pausedReason Why it is paused; absent unless it is. Null if absent.
 * @param occurrenceAt The instant of the current occurrence, waiting or being attempted; absent once ended. Null if absent.
 * @param attempts Attempts of the current occurrence. Null if absent.
 * @param nextAttemptAt When the next attempt is due. Null if absent.
 * @param lastError Why the last failed attempt failed: a stable code, then details. Null if absent.
 * @param lastOccurrence The occurrence that ended last. Null if absent.
 * @param suspended Why the current occurrence is suspended although the schedule is active: as in a timer's
 * <code>suspended</code>; absent unless it is. Null if absent.
 * @param onFailure Who is notified when it has failed, or expired. Null if absent.
 * @param onSuccess Who is notified when it has succeeded. Null if absent.
 * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
 * its replay. Null if absent.
 * @param onMissed Who is notified when instants did not fire, though the schedule was not paused. Null if absent.
 * @param onPaused Who is notified when the schedule has paused itself after failures in a row. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record Schedule(
        String namespace,
        String id,
        String scheduleUuid,
        long shardId,
        ScheduleStatus status,
        String sentence,
        List<Instant> nextInstants,
        Map<String, Long> counts,
        Map<String, Long> missed,
        long triggersWaiting,
        long backfillsWaiting,
        long replaysWaiting,
        CatchUp catchUp,
        Duration jitter,
        long pauseAfterFailures,
        List<String> only,
        List<String> skip,
        OnSkipped onSkipped,
        List<String> skippedInstants,
        String callbackUrl,
        CallbackMethod method,
        Map<String, String> headers,
        double callbackTimeoutSeconds,
        List<String> tags,
        Instant createdAt,
        Instant updatedAt,
        long version,
        @Nullable String cron,
        @Nullable String timeZone,
        @Nullable Duration every,
        @Nullable Instant anchor,
        @Nullable Instant startAt,
        @Nullable Instant endAt,
        @Nullable Long maxOccurrences,
        @Nullable Duration catchUpWindow,
        @Nullable String expireAfter,
        @Nullable String description,
        @Nullable String flowKey,
        @Nullable String credential,
        @Nullable Json payload,
        @Nullable RawBodyAnswer body,
        @Nullable RetryPolicyAnswer retryPolicy,
        @Nullable String pausedReason,
        @Nullable Instant occurrenceAt,
        @Nullable Long attempts,
        @Nullable Instant nextAttemptAt,
        @Nullable String lastError,
        @Nullable Occurrence lastOccurrence,
        @Nullable String suspended,
        @Nullable HookAnswer onFailure,
        @Nullable HookAnswer onSuccess,
        @Nullable HookAnswer onRecovery,
        @Nullable HookAnswer onMissed,
        @Nullable HookAnswer onPaused,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Schedule fromJson(Json source) {
        return new Schedule(
                source.read("namespace", Json::asString),
                source.read("id", Json::asString),
                source.read("scheduleUuid", Json::asString),
                source.read("shardId", Json::asLong),
                source.read("status", ScheduleStatus::fromJson),
                source.read("sentence", Json::asString),
                source.read("nextInstants", json -> json.asList(Values::toInstant)),
                source.read("counts", json -> json.asMap(Json::asLong)),
                source.read("missed", json -> json.asMap(Json::asLong)),
                source.read("triggersWaiting", Json::asLong),
                source.read("backfillsWaiting", Json::asLong),
                source.read("replaysWaiting", Json::asLong),
                source.read("catchUp", CatchUp::fromJson),
                source.read("jitter", Values::toDuration),
                source.read("pauseAfterFailures", Json::asLong),
                source.read("only", json -> json.asList(Json::asString)),
                source.read("skip", json -> json.asList(Json::asString)),
                source.read("onSkipped", OnSkipped::fromJson),
                source.read("skippedInstants", json -> json.asList(Json::asString)),
                source.read("callbackUrl", Json::asString),
                source.read("method", CallbackMethod::fromJson),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.read("callbackTimeoutSeconds", Json::asDouble),
                source.read("tags", json -> json.asList(Json::asString)),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.read("version", Json::asLong),
                source.readOptional("cron", Json::asString),
                source.readOptional("timeZone", Json::asString),
                source.readOptional("every", Values::toDuration),
                source.readOptional("anchor", Values::toInstant),
                source.readOptional("startAt", Values::toInstant),
                source.readOptional("endAt", Values::toInstant),
                source.readOptional("maxOccurrences", Json::asLong),
                source.readOptional("catchUpWindow", Values::toDuration),
                source.readOptional("expireAfter", Json::asString),
                source.readOptional("description", Json::asString),
                source.readOptional("flowKey", Json::asString),
                source.readOptional("credential", Json::asString),
                source.readOptional("payload", value -> value),
                source.readOptional("body", RawBodyAnswer::fromJson),
                source.readOptional("retryPolicy", RetryPolicyAnswer::fromJson),
                source.readOptional("pausedReason", Json::asString),
                source.readOptional("occurrenceAt", Values::toInstant),
                source.readOptional("attempts", Json::asLong),
                source.readOptional("nextAttemptAt", Values::toInstant),
                source.readOptional("lastError", Json::asString),
                source.readOptional("lastOccurrence", Occurrence::fromJson),
                source.readOptional("suspended", Json::asString),
                source.readOptional("onFailure", HookAnswer::fromJson),
                source.readOptional("onSuccess", HookAnswer::fromJson),
                source.readOptional("onRecovery", HookAnswer::fromJson),
                source.readOptional("onMissed", HookAnswer::fromJson),
                source.readOptional("onPaused", HookAnswer::fromJson),
                source.readOptional("managedBy", Json::asString));
    }
}