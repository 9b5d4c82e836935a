// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * A service call's state. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record ServiceCallStatus(String value) implements OpenEnum {
    /** Scheduled. */
    public static final ServiceCallStatus SCHEDULED = new ServiceCallStatus("Scheduled");

    /** Running. */
    public static final ServiceCallStatus RUNNING = new ServiceCallStatus("Running");

    /** Retrying. */
    public static final ServiceCallStatus RETRYING = new ServiceCallStatus("Retrying");

    /** Succeeded. */
    public static final ServiceCallStatus SUCCEEDED = new ServiceCallStatus("Succeeded");

    /** Failed. */
    public static final ServiceCallStatus FAILED = new ServiceCallStatus("Failed");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static ServiceCallStatus fromJson(Json source) {
        return new ServiceCallStatus(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}