// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * How responses to a namespace's callbacks are interpreted. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record CallbackAnswers(String value) implements OpenEnum {
    /** standard. */
    public static final CallbackAnswers STANDARD = new CallbackAnswers("standard");

    /** strict. */
    public static final CallbackAnswers STRICT = new CallbackAnswers("strict");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static CallbackAnswers fromJson(Json source) {
        return new CallbackAnswers(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}