// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Why an occurrence fired. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record OccurrenceSource(String value) implements OpenEnum {
    /** regular. */
    public static final OccurrenceSource REGULAR = new OccurrenceSource("regular");

    /** trigger. */
    public static final OccurrenceSource TRIGGER = new OccurrenceSource("trigger");

    /** backfill. */
    public static final OccurrenceSource BACKFILL = new OccurrenceSource("backfill");

    /** replay. */
    public static final OccurrenceSource REPLAY = new OccurrenceSource("replay");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static OccurrenceSource fromJson(Json source) {
        return new OccurrenceSource(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}