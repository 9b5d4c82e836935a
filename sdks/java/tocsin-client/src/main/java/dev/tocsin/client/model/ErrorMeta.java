// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * Why the call failed.
 *
 * @param kind A stable code.
 * @param message message
 * @param latencyMs From the dispatch of the request to the end of the response, in milliseconds.
 */
public record ErrorMeta(
        FailureKind kind,
        String message,
        double latencyMs) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ErrorMeta fromJson(Json source) {
        return new ErrorMeta(
                source.read("kind", FailureKind::fromJson),
                source.read("message", Json::asString),
                source.read("latencyMs", Json::asDouble));
    }
}