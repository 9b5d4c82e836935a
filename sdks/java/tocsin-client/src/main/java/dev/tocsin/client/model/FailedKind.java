// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What failed. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record FailedKind(String value) implements OpenEnum {
    /** timer. */
    public static final FailedKind TIMER = new FailedKind("timer");

    /** occurrence. */
    public static final FailedKind OCCURRENCE = new FailedKind("occurrence");

    /** notification. */
    public static final FailedKind NOTIFICATION = new FailedKind("notification");

    /** call. */
    public static final FailedKind CALL = new FailedKind("call");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static FailedKind fromJson(Json source) {
        return new FailedKind(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}