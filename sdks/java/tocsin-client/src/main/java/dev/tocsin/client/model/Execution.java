// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One execution of the request. Without <code>finishedAt</code> it is in flight.
 *
 * @param number Its number among the call's executions, from 1.
 * @param executionId A UUID of version 7.
 * @param startedAt An RFC 3339 instant with a time zone.
 * @param request request
 * @param finishedAt An RFC 3339 instant with a time zone. Null if absent.
 * @param response response Null if absent.
 * @param errorMessage errorMessage Null if absent.
 */
public record Execution(
        long number,
        String executionId,
        Instant startedAt,
        ExecutedRequest request,
        @Nullable Instant finishedAt,
        @Nullable ExecutedResponse response,
        @Nullable String errorMessage) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Execution fromJson(Json source) {
        return new Execution(
                source.read("number", Json::asLong),
                source.read("executionId", Json::asString),
                source.read("startedAt", Values::toInstant),
                source.read("request", ExecutedRequest::fromJson),
                source.readOptional("finishedAt", Values::toInstant),
                source.readOptional("response", ExecutedResponse::fromJson),
                source.readOptional("errorMessage", Json::asString));
    }
}