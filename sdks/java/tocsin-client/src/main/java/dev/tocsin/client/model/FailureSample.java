// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * The newest failure of a group: its request and its last attempt, as far as they are kept.
 *
 * @param method The request's method. Null if absent.
 * @param url The request's URL, without its secrets. Null if absent.
 * @param attempt The last attempt. Null if absent.
 */
public record FailureSample(
        @Nullable String method,
        @Nullable String url,
        @Nullable Attempt attempt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FailureSample fromJson(Json source) {
        return new FailureSample(
                source.readOptional("method", Json::asString),
                source.readOptional("url", Json::asString),
                source.readOptional("attempt", Attempt::fromJson));
    }
}