// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * A timer's state. Only <code>pending</code> timers fire and can be changed. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record TimerStatus(String value) implements OpenEnum {
    /** pending. */
    public static final TimerStatus PENDING = new TimerStatus("pending");

    /** completed. */
    public static final TimerStatus COMPLETED = new TimerStatus("completed");

    /** failed. */
    public static final TimerStatus FAILED = new TimerStatus("failed");

    /** canceled. */
    public static final TimerStatus CANCELED = new TimerStatus("canceled");

    /** expired. */
    public static final TimerStatus EXPIRED = new TimerStatus("expired");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static TimerStatus fromJson(Json source) {
        return new TimerStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}