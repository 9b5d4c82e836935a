// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The debounced creates for which one firing of a timer stands.
 *
 * @param creates How many they are.
 * @param firstAt When the first one was made.
 * @param latestAt The timer fires at the latest then.
 * @param collected How many payloads the payload's array has; absent if it has that of the latest create. Null if absent.
 */
public record Debounced(
        long creates,
        Instant firstAt,
        String latestAt,
        @Nullable Long collected) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Debounced fromJson(Json source) {
        return new Debounced(
                source.read("creates", Json::asLong),
                source.read("firstAt", Values::toInstant),
                source.read("latestAt", Json::asString),
                source.readOptional("collected", Json::asLong));
    }
}