// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What becomes of an instant that a calendar excludes. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record OnSkipped(String value) implements OpenEnum {
    /** none. */
    public static final OnSkipped NONE = new OnSkipped("none");

    /** next. */
    public static final OnSkipped NEXT = new OnSkipped("next");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static OnSkipped fromJson(Json source) {
        return new OnSkipped(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}