// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What a service call waits for: its due time, or a retry. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record WaitingStatus(String value) implements OpenEnum {
    /** Scheduled. */
    public static final WaitingStatus SCHEDULED = new WaitingStatus("Scheduled");

    /** Retrying. */
    public static final WaitingStatus RETRYING = new WaitingStatus("Retrying");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static WaitingStatus fromJson(Json source) {
        return new WaitingStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}