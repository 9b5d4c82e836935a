// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * <code>closed</code>: attempts begin as usual. <code>open</code>: none begins before the wait is
 * over. <code>half_open</code>: probes, one at a time. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record BreakerState(String value) implements OpenEnum {
    /** closed. */
    public static final BreakerState CLOSED = new BreakerState("closed");

    /** open. */
    public static final BreakerState OPEN = new BreakerState("open");

    /** half_open. */
    public static final BreakerState HALF_OPEN = new BreakerState("half_open");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static BreakerState fromJson(Json source) {
        return new BreakerState(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}