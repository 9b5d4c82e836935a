// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What a job does with each row. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record JobAction(String value) implements OpenEnum {
    /** cancel. */
    public static final JobAction CANCEL = new JobAction("cancel");

    /** shift. */
    public static final JobAction SHIFT = new JobAction("shift");

    /** setUrl. */
    public static final JobAction SET_URL = new JobAction("setUrl");

    /** pause. */
    public static final JobAction PAUSE = new JobAction("pause");

    /** resume. */
    public static final JobAction RESUME = new JobAction("resume");

    /** delete. */
    public static final JobAction DELETE = new JobAction("delete");

    /** replay. */
    public static final JobAction REPLAY = new JobAction("replay");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static JobAction fromJson(Json source) {
        return new JobAction(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}