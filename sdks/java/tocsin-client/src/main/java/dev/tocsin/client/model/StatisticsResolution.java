// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * The length of a slot. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record StatisticsResolution(String value) implements OpenEnum {
    /** minute. */
    public static final StatisticsResolution MINUTE = new StatisticsResolution("minute");

    /** tenMinutes. */
    public static final StatisticsResolution TEN_MINUTES = new StatisticsResolution("tenMinutes");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static StatisticsResolution fromJson(Json source) {
        return new StatisticsResolution(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}