// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The request; secrets are redacted.
 *
 * @param method The method of the request.
 * @param url The http or https URL.
 * @param headers Headers; secret values are redacted.
 * @param body Any JSON: a string is sent as plain text, any other value as JSON. Null if absent.
 * @param retryPolicy retryPolicy Null if absent.
 * @param credential The credential that the request has. Null if absent.
 */
public record ShownRequest(
        ServiceCallMethod method,
        String url,
        Map<String, String> headers,
        @Nullable Json body,
        @Nullable RetryPolicyAnswer retryPolicy,
        @Nullable String credential) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ShownRequest fromJson(Json source) {
        return new ShownRequest(
                source.read("method", ServiceCallMethod::fromJson),
                source.read("url", Json::asString),
                source.read("headers", json -> json.asMap(Json::asString)),
                source.readOptional("body", value -> value),
                source.readOptional("retryPolicy", RetryPolicyAnswer::fromJson),
                source.readOptional("credential", Json::asString));
    }
}