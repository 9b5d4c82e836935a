// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;

/**
 * One attempt. <code>status</code> is null if there was no response.
 *
 * @param at When the attempt started.
 * @param durationMs Duration in milliseconds.
 * @param status The HTTP status; null if there was no response. Null if absent.
 * @param error Why it failed: a stable code, then details. Null if it succeeded. Null if absent.
 */
public record Attempt(
        Instant at,
        double durationMs,
        Long status,
        String error) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Attempt fromJson(Json source) {
        return new Attempt(
                source.read("at", Values::toInstant),
                source.read("durationMs", Json::asDouble),
                source.readOptional("status", Json::asLong),
                source.readOptional("error", Json::asString));
    }
}