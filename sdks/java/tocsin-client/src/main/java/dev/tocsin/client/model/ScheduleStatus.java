// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * A schedule's state. Only <code>active</code> schedules fire at their instants. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record ScheduleStatus(String value) implements OpenEnum {
    /** active. */
    public static final ScheduleStatus ACTIVE = new ScheduleStatus("active");

    /** paused. */
    public static final ScheduleStatus PAUSED = new ScheduleStatus("paused");

    /** ended. */
    public static final ScheduleStatus ENDED = new ScheduleStatus("ended");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static ScheduleStatus fromJson(Json source) {
        return new ScheduleStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}