// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * A day of the week. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record Weekday(String value) implements OpenEnum {
    /** MON. */
    public static final Weekday MON = new Weekday("MON");

    /** TUE. */
    public static final Weekday TUE = new Weekday("TUE");

    /** WED. */
    public static final Weekday WED = new Weekday("WED");

    /** THU. */
    public static final Weekday THU = new Weekday("THU");

    /** FRI. */
    public static final Weekday FRI = new Weekday("FRI");

    /** SAT. */
    public static final Weekday SAT = new Weekday("SAT");

    /** SUN. */
    public static final Weekday SUN = new Weekday("SUN");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static Weekday fromJson(Json source) {
        return new Weekday(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}