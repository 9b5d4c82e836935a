// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Which finished timers stay visible until retention removes them. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record HistoryMode(String value) implements OpenEnum {
    /** all. */
    public static final HistoryMode ALL = new HistoryMode("all");

    /** failures. */
    public static final HistoryMode FAILURES = new HistoryMode("failures");

    /** none. */
    public static final HistoryMode NONE = new HistoryMode("none");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static HistoryMode fromJson(Json source) {
        return new HistoryMode(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}