// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.Map;

/**
 * The response that was received.
 *
 * @param status status
 * @param headers Headers; secret values are redacted.
 * @param body The first part of the body.
 */
public record ExecutedResponse(
        long status,
        Map<String, String> headers,
        String body) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ExecutedResponse fromJson(Json source) {
        return new ExecutedResponse(
                source.read("status", Json::asLong),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.read("body", Json::asString));
    }
}