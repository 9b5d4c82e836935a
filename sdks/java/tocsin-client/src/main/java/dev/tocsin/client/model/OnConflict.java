// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What a create does if a timer with its id exists. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record OnConflict(String value) implements OpenEnum {
    /** replace. */
    public static final OnConflict REPLACE = new OnConflict("replace");

    /** keep. */
    public static final OnConflict KEEP = new OnConflict("keep");

    /** reject. */
    public static final OnConflict REJECT = new OnConflict("reject");

    /** debounce. */
    public static final OnConflict DEBOUNCE = new OnConflict("debounce");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static OnConflict fromJson(Json source) {
        return new OnConflict(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}