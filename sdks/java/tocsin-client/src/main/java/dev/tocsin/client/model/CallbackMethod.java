// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * The method of a callback. GET and HEAD have no body. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record CallbackMethod(String value) implements OpenEnum {
    /** POST. */
    public static final CallbackMethod POST = new CallbackMethod("POST");

    /** GET. */
    public static final CallbackMethod GET = new CallbackMethod("GET");

    /** PUT. */
    public static final CallbackMethod PUT = new CallbackMethod("PUT");

    /** PATCH. */
    public static final CallbackMethod PATCH = new CallbackMethod("PATCH");

    /** DELETE. */
    public static final CallbackMethod DELETE = new CallbackMethod("DELETE");

    /** HEAD. */
    public static final CallbackMethod HEAD = new CallbackMethod("HEAD");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static CallbackMethod fromJson(Json source) {
        return new CallbackMethod(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}