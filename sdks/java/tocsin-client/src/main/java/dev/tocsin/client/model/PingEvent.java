// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What a ping reports. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record PingEvent(String value) implements OpenEnum {
    /** success. */
    public static final PingEvent SUCCESS = new PingEvent("success");

    /** start. */
    public static final PingEvent START = new PingEvent("start");

    /** fail. */
    public static final PingEvent FAIL = new PingEvent("fail");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static PingEvent fromJson(Json source) {
        return new PingEvent(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}