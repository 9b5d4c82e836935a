// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * How a run stands or ended. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record RunStatus(String value) implements OpenEnum {
    /** pending. */
    public static final RunStatus PENDING = new RunStatus("pending");

    /** completed. */
    public static final RunStatus COMPLETED = new RunStatus("completed");

    /** failed. */
    public static final RunStatus FAILED = new RunStatus("failed");

    /** canceled. */
    public static final RunStatus CANCELED = new RunStatus("canceled");

    /** expired. */
    public static final RunStatus EXPIRED = new RunStatus("expired");

    /** rescheduled. */
    public static final RunStatus RESCHEDULED = new RunStatus("rescheduled");

    /** superseded. */
    public static final RunStatus SUPERSEDED = new RunStatus("superseded");

    /** missed. */
    public static final RunStatus MISSED = new RunStatus("missed");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static RunStatus fromJson(Json source) {
        return new RunStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}