// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * The method of a service call's request. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record ServiceCallMethod(String value) implements OpenEnum {
    /** POST. */
    public static final ServiceCallMethod POST = new ServiceCallMethod("POST");

    /** GET. */
    public static final ServiceCallMethod GET = new ServiceCallMethod("GET");

    /** PUT. */
    public static final ServiceCallMethod PUT = new ServiceCallMethod("PUT");

    /** PATCH. */
    public static final ServiceCallMethod PATCH = new ServiceCallMethod("PATCH");

    /** DELETE. */
    public static final ServiceCallMethod DELETE = new ServiceCallMethod("DELETE");

    /** HEAD. */
    public static final ServiceCallMethod HEAD = new ServiceCallMethod("HEAD");

    /** OPTIONS. */
    public static final ServiceCallMethod OPTIONS = new ServiceCallMethod("OPTIONS");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static ServiceCallMethod fromJson(Json source) {
        return new ServiceCallMethod(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}