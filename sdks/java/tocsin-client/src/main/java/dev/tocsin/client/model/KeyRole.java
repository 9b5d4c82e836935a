// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What an API key allows; each role includes the previous ones. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record KeyRole(String value) implements OpenEnum {
    /** read. */
    public static final KeyRole READ = new KeyRole("read");

    /** write. */
    public static final KeyRole WRITE = new KeyRole("write");

    /** admin. */
    public static final KeyRole ADMIN = new KeyRole("admin");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static KeyRole fromJson(Json source) {
        return new KeyRole(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}