// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What becomes of instants that pass while a schedule cannot fire. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record CatchUp(String value) implements OpenEnum {
    /** latest. */
    public static final CatchUp LATEST = new CatchUp("latest");

    /** all. */
    public static final CatchUp ALL = new CatchUp("all");

    /** none. */
    public static final CatchUp NONE = new CatchUp("none");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static CatchUp fromJson(Json source) {
        return new CatchUp(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}