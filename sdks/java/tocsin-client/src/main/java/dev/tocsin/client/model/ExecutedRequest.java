// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The request that was sent.
 *
 * @param method The method of the request.
 * @param url The http or https URL.
 * @param headers Headers; secret values are redacted.
 * @param body The first part of the body. Null if absent.
 */
public record ExecutedRequest(
        ServiceCallMethod method,
        String url,
        Map<String, String> headers,
        @Nullable String body) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ExecutedRequest fromJson(Json source) {
        return new ExecutedRequest(
                source.read("method", ServiceCallMethod::fromJson),
                source.read("url", Json::asString),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.readOptional("body", Json::asString));
    }
}