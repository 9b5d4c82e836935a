// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Where a token endpoint gets the client's secret. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record ClientAuth(String value) implements OpenEnum {
    /** basic. */
    public static final ClientAuth BASIC = new ClientAuth("basic");

    /** post. */
    public static final ClientAuth POST = new ClientAuth("post");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static ClientAuth fromJson(Json source) {
        return new ClientAuth(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}