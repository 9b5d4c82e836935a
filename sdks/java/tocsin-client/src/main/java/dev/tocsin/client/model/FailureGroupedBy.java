// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What the failures of a group have in common. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record FailureGroupedBy(String value) implements OpenEnum {
    /** namespace. */
    public static final FailureGroupedBy NAMESPACE = new FailureGroupedBy("namespace");

    /** tenant. */
    public static final FailureGroupedBy TENANT = new FailureGroupedBy("tenant");

    /** destination. */
    public static final FailureGroupedBy DESTINATION = new FailureGroupedBy("destination");

    /** error. */
    public static final FailureGroupedBy ERROR = new FailureGroupedBy("error");

    /** kind. */
    public static final FailureGroupedBy KIND = new FailureGroupedBy("kind");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static FailureGroupedBy fromJson(Json source) {
        return new FailureGroupedBy(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}