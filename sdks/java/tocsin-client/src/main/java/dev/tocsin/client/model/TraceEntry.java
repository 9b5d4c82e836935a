// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One result of a submission: a message or a row.
 *
 * @param at With millisecond precision; for a row, when it entered the state shown.
 * @param kind message, or a table's name.
 * @param name The message's type, or the event.
 * @param id The id of the message or row.
 * @param detail detail
 * @param causationId The message that caused this one. Null if absent.
 */
public record TraceEntry(
        Instant at,
        String kind,
        String name,
        String id,
        Map<String, Json> detail,
        @Nullable String causationId) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static TraceEntry fromJson(Json source) {
        return new TraceEntry(
                source.read("at", Values::toInstant),
                source.read("kind", Json::asString),
                source.read("name", Json::asString),
                source.read("id", Json::asString),
                source.read("detail", json -> json.asMap(value -> value)),
                source.readOptional("causationId", Json::asString));
    }
}