// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;

/**
 * A row that is refused for good, and waits for somebody to replay or delete it.
 *
 * @param id The row's id.
 * @param namespace The namespace of the timer that it asks for.
 * @param timerId That timer's id.
 * @param createdAt When the row was written.
 * @param deadReason The error code, and why it was refused.
 */
public record DeadRow(
        String id,
        String namespace,
        String timerId,
        Instant createdAt,
        String deadReason) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DeadRow fromJson(Json source) {
        return new DeadRow(
                source.read("id", Json::asString),
                source.read("namespace", Json::asString),
                source.read("timerId", Json::asString),
                source.read("createdAt", Values::toInstant),
                source.read("deadReason", Json::asString));
    }
}