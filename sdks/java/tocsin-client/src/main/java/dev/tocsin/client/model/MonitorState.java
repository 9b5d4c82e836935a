// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What is known of a monitor's job. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record MonitorState(String value) implements OpenEnum {
    /** new. */
    public static final MonitorState NEW = new MonitorState("new");

    /** up. */
    public static final MonitorState UP = new MonitorState("up");

    /** late. */
    public static final MonitorState LATE = new MonitorState("late");

    /** failed. */
    public static final MonitorState FAILED = new MonitorState("failed");

    /** paused. */
    public static final MonitorState PAUSED = new MonitorState("paused");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static MonitorState fromJson(Json source) {
        return new MonitorState(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}