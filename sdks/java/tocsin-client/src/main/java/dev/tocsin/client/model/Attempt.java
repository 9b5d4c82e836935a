// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One attempt. <code>status</code> is absent if there was no response, <code>error</code> if the
 * attempt succeeded.
 *
 * @param startedAt When the attempt started.
 * @param durationMs Duration in milliseconds.
 * @param status The HTTP status. Null if absent.
 * @param error Why the attempt failed: a stable code, then details. Null if absent.
 * @param answer The beginning of the response's body on one line, without secrets; its length if it is no text.
 * Absent if the receiver just accepted the callback. Null if absent.
 * @param batch The <code>webhook-id</code> of its batch; absent if it had a request of its own. Null if absent.
 */
public record Attempt(
        Instant startedAt,
        double durationMs,
        @Nullable Long status,
        @Nullable String error,
        @Nullable String answer,
        @Nullable String batch) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Attempt fromJson(Json source) {
        return new Attempt(
                source.read("startedAt", Values::toInstant),
                source.read("durationMs", Json::asDouble),
                source.readOptional("status", Json::asLong),
                source.readOptional("error", Json::asString),
                source.readOptional("answer", Json::asString),
                source.readOptional("batch", Json::asString));
    }
}