// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;

/**
 * Instants that did not fire, from the first to the last.
 *
 * @param reason late, overlap, window, paused or excluded.
 * @param count How many; 1,000 stands for more, too.
 * @param firstAt An RFC 3339 instant with a time zone.
 * @param lastAt An RFC 3339 instant with a time zone.
 */
public record MissedRange(
        String reason,
        long count,
        Instant firstAt,
        Instant lastAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MissedRange fromJson(Json source) {
        return new MissedRange(
                source.read("reason", Json::asString),
                source.read("count", Json::asLong),
                source.read("firstAt", Values::toInstant),
                source.read("lastAt", Values::toInstant));
    }
}