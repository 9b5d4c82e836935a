// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * How a period of a monitor ended. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record PeriodState(String value) implements OpenEnum {
    /** onTime. */
    public static final PeriodState ON_TIME = new PeriodState("onTime");

    /** late. */
    public static final PeriodState LATE = new PeriodState("late");

    /** missed. */
    public static final PeriodState MISSED = new PeriodState("missed");

    /** failed. */
    public static final PeriodState FAILED = new PeriodState("failed");

    /** excused. */
    public static final PeriodState EXCUSED = new PeriodState("excused");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static PeriodState fromJson(Json source) {
        return new PeriodState(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}