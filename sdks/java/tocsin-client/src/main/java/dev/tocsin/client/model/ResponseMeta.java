// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.Map;

/**
 * The service's response.
 *
 * @param status status
 * @param headers Headers; secret values are redacted.
 * @param bodySnippet The first part of the body.
 * @param truncated Whether the body was longer than the snippet.
 * @param latencyMs From the dispatch of the request to the end of the response, in milliseconds.
 */
public record ResponseMeta(
        long status,
        Map<String, String> headers,
        String bodySnippet,
        boolean truncated,
        double latencyMs) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ResponseMeta fromJson(Json source) {
        return new ResponseMeta(
                source.read("status", Json::asLong),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.read("bodySnippet", Json::asString),
                source.read("truncated", Json::asBoolean),
                source.read("latencyMs", Json::asDouble));
    }
}