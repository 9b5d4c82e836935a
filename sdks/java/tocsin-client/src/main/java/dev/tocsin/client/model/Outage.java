// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An interval in which a node fired nothing. <code>late</code>, <code>lateMaxMs</code> and
 * <code>createsRefused</code> are null for a key that is limited to namespaces or tenants, and while
 * the interval lasts.
 *
 * @param node node
 * @param from When it began.
 * @param reason lease (the store did not answer in time), clock_skew, clock_jump, unwritten_results.
 * @param late Attempts that were due before its end and began more than a second late because of it. Null if absent.
 * @param lateMaxMs How late they were at most, in ms. Null if absent.
 * @param createsRefused Creates of timers and schedules that got an error of the server meanwhile: requests, and single
 * timers of a batch. Null if absent.
 * @param counting Whether more late attempts may be counted.
 * @param to When it ended; absent while it lasts. Null if absent.
 */
public record Outage(
        String node,
        Instant from,
        String reason,
        @Nullable Long late,
        @Nullable Double lateMaxMs,
        @Nullable Long createsRefused,
        boolean counting,
        @Nullable Instant to) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Outage fromJson(Json source) {
        return new Outage(
                source.read("node", Json::asString),
                source.read("from", Values::toInstant),
                source.read("reason", Json::asString),
                source.readNullable("late", Json::asLong),
                source.readNullable("lateMaxMs", Json::asDouble),
                source.readNullable("createsRefused", Json::asLong),
                source.read("counting", Json::asBoolean),
                source.readOptional("to", Values::toInstant));
    }
}