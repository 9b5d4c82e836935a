// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * running and paused ones go on, or may; completed, canceled and failed ones have ended. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record JobState(String value) implements OpenEnum {
    /** running. */
    public static final JobState RUNNING = new JobState("running");

    /** paused. */
    public static final JobState PAUSED = new JobState("paused");

    /** completed. */
    public static final JobState COMPLETED = new JobState("completed");

    /** canceled. */
    public static final JobState CANCELED = new JobState("canceled");

    /** failed. */
    public static final JobState FAILED = new JobState("failed");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static JobState fromJson(Json source) {
        return new JobState(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}