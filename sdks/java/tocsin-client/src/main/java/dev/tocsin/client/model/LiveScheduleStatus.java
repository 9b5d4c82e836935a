// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * The state of a schedule that has not ended. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record LiveScheduleStatus(String value) implements OpenEnum {
    /** active. */
    public static final LiveScheduleStatus ACTIVE = new LiveScheduleStatus("active");

    /** paused. */
    public static final LiveScheduleStatus PAUSED = new LiveScheduleStatus("paused");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static LiveScheduleStatus fromJson(Json source) {
        return new LiveScheduleStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}