// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A job of a namespace or of a tenant, and how far it is.
 *
 * @param id The job's id.
 * @param action What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of
 * schedules; replay of failures; delete of service calls.
 * @param of What it changes. A namespace is deleted with all that is in it.
 * @param filter filter
 * @param state running and paused ones go on, or may; completed, canceled and failed ones have ended.
 * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
 * @param dryRun Only counts the rows that match. Default false.
 * @param matched Rows examined that match.
 * @param changed Rows changed.
 * @param skipped Rows that had ended or changed meanwhile, or were as wanted already.
 * @param errors Rows that could not be changed.
 * @param sampleErrors The first ten of them.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to. Null if absent.
 * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
 * key has access to. Null if absent.
 * @param shiftBy By how much shift moves the instants: a duration, with - to an earlier one. Null if absent.
 * @param url The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets. Null if absent.
 * @param matchMax The job fails instead of changing more rows, for example than a dry run has counted. Null if absent.
 * @param examinedTo Timers due before this instant have been examined. Null if absent.
 * @param cancelPending Whether the namespace is deleted although timers or schedules are pending in it. Null if absent.
 * @param reason Why it failed. Null if absent.
 * @param createdBy The id of the key that created it. Null if absent.
 * @param endedAt An RFC 3339 instant with a time zone. Null if absent.
 */
public record Job(
        String id,
        JobAction action,
        JobKind of,
        JobFilterAnswer filter,
        JobState state,
        long ratePerSecond,
        boolean dryRun,
        long matched,
        long changed,
        long skipped,
        long errors,
        List<JobFailure> sampleErrors,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String namespace,
        @Nullable String tenant,
        @Nullable String shiftBy,
        @Nullable String url,
        @Nullable Long matchMax,
        @Nullable String examinedTo,
        @Nullable Boolean cancelPending,
        @Nullable String reason,
        @Nullable String createdBy,
        @Nullable String endedAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Job fromJson(Json source) {
        return new Job(
                source.read("id", Json::asString),
                source.read("action", JobAction::fromJson),
                source.read("of", JobKind::fromJson),
                source.read("filter", JobFilterAnswer::fromJson),
                source.read("state", JobState::fromJson),
                source.read("ratePerSecond", Json::asLong),
                source.read("dryRun", Json::asBoolean),
                source.read("matched", Json::asLong),
                source.read("changed", Json::asLong),
                source.read("skipped", Json::asLong),
                source.read("errors", Json::asLong),
                source.read("sampleErrors", json -> json.asList(JobFailure::fromJson)),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("namespace", Json::asString),
                source.readOptional("tenant", Json::asString),
                source.readOptional("shiftBy", Json::asString),
                source.readOptional("url", Json::asString),
                source.readOptional("matchMax", Json::asLong),
                source.readOptional("examinedTo", Json::asString),
                source.readOptional("cancelPending", Json::asBoolean),
                source.readOptional("reason", Json::asString),
                source.readOptional("createdBy", Json::asString),
                source.readOptional("endedAt", Json::asString));
    }
}