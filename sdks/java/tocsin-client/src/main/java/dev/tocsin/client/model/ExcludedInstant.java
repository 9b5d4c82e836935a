// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An instant that does not fire.
 *
 * @param instant The instant; one that a calendar excludes is without jitter.
 * @param reason only, skip, once or missing.
 * @param calendar The calendar, or those of only. Null if absent.
 */
public record ExcludedInstant(
        Instant instant,
        ExclusionReason reason,
        @Nullable String calendar) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ExcludedInstant fromJson(Json source) {
        return new ExcludedInstant(
                source.read("instant", Values::toInstant),
                source.read("reason", ExclusionReason::fromJson),
                source.readOptional("calendar", Json::asString));
    }
}