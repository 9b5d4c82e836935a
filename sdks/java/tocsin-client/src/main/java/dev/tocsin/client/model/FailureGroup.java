// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Failures with something in common. Fields in which they differ are absent.
 *
 * @param count How many failures were counted.
 * @param firstAt When the first one failed.
 * @param lastAt When the last one failed.
 * @param series How many failed in each of 24 equal parts of the time from the first one to now.
 * @param newest The newest ones, at most 10.
 * @param namespace The namespace; absent of service calls. Null if absent.
 * @param tenant The tenant; of service calls only. Null if absent.
 * @param destination The URL that was called, without credentials and query. Null if absent.
 * @param error The stable code of the last error, without details. Null if absent.
 * @param kind What failed. Null if absent.
 * @param sample The newest failure in detail. Null if absent.
 */
public record FailureGroup(
        long count,
        Instant firstAt,
        Instant lastAt,
        List<Long> series,
        List<Failure> newest,
        @Nullable String namespace,
        @Nullable String tenant,
        @Nullable String destination,
        @Nullable String error,
        @Nullable FailedKind kind,
        @Nullable FailureSample sample) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FailureGroup fromJson(Json source) {
        return new FailureGroup(
                source.read("count", Json::asLong),
                source.read("firstAt", Values::toInstant),
                source.read("lastAt", Values::toInstant),
                source.read("series", json -> json.asList(Json::asLong)),
                source.read("newest", json -> json.asList(Failure::fromJson)),
                source.readOptional("namespace", Json::asString),
                source.readOptional("tenant", Json::asString),
                source.readOptional("destination", Json::asString),
                source.readOptional("error", Json::asString),
                source.readOptional("kind", FailedKind::fromJson),
                source.readOptional("sample", FailureSample::fromJson));
    }
}