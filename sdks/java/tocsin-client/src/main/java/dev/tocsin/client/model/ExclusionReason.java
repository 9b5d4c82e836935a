// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Why an instant doesn't fire: its date is of a calendar of <code>skip</code>, or of none of
 * <code>only</code>; it was skipped by hand (once); or a calendar is missing, so that nobody knows. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record ExclusionReason(String value) implements OpenEnum {
    /** only. */
    public static final ExclusionReason ONLY = new ExclusionReason("only");

    /** skip. */
    public static final ExclusionReason SKIP = new ExclusionReason("skip");

    /** once. */
    public static final ExclusionReason ONCE = new ExclusionReason("once");

    /** missing. */
    public static final ExclusionReason MISSING = new ExclusionReason("missing");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static ExclusionReason fromJson(Json source) {
        return new ExclusionReason(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}