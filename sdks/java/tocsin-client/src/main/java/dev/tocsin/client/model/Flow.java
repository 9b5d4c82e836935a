// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A rule, and what is under way of its flow keys.
 *
 * @param namespace The namespace's name.
 * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
 * @param closeOnRetryAfter Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.
 * @param paused Whether nothing of it begins.
 * @param version 1, and one more with each change.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param inFlight Attempts that are in flight.
 * @param waiting Due timers that wait in memory, and service calls; further timers may wait in the store.
 * @param complete Whether all nodes have answered; otherwise more may be in flight and wait than is shown.
 * @param perKey The limits of each flow key by itself. Null if absent.
 * @param total The limits of all flow keys of the rule together. Null if absent.
 * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
 * receiver answers timer by timer. Null if absent.
 * @param pausedUntil When it goes on; absent unless it is paused until an instant. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record Flow(
        String namespace,
        String match,
        boolean closeOnRetryAfter,
        boolean paused,
        long version,
        Instant createdAt,
        Instant updatedAt,
        long inFlight,
        long waiting,
        boolean complete,
        @Nullable FlowLimitsAnswer perKey,
        @Nullable FlowLimitsAnswer total,
        @Nullable CallbackBatchAnswer callbackBatch,
        @Nullable String pausedUntil,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Flow fromJson(Json source) {
        return new Flow(
                source.read("namespace", Json::asString),
                source.read("match", Json::asString),
                source.read("closeOnRetryAfter", Json::asBoolean),
                source.read("paused", Json::asBoolean),
                source.read("version", Json::asLong),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.read("inFlight", Json::asLong),
                source.read("waiting", Json::asLong),
                source.read("complete", Json::asBoolean),
                source.readOptional("perKey", FlowLimitsAnswer::fromJson),
                source.readOptional("total", FlowLimitsAnswer::fromJson),
                source.readOptional("callbackBatch", CallbackBatchAnswer::fromJson),
                source.readOptional("pausedUntil", Json::asString),
                source.readOptional("managedBy", Json::asString));
    }
}