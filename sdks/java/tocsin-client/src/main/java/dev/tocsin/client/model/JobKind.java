// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * What a job changes. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record JobKind(String value) implements OpenEnum {
    /** timers. */
    public static final JobKind TIMERS = new JobKind("timers");

    /** schedules. */
    public static final JobKind SCHEDULES = new JobKind("schedules");

    /** failures. */
    public static final JobKind FAILURES = new JobKind("failures");

    /** calls. */
    public static final JobKind CALLS = new JobKind("calls");

    /** namespace. */
    public static final JobKind NAMESPACE = new JobKind("namespace");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static JobKind fromJson(Json source) {
        return new JobKind(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}