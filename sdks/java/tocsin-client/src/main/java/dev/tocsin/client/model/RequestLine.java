// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * The request's method and URL.
 *
 * @param method The method of the request.
 * @param url The http or https URL.
 */
public record RequestLine(
        ServiceCallMethod method,
        String url) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static RequestLine fromJson(Json source) {
        return new RequestLine(
                source.read("method", ServiceCallMethod::fromJson),
                source.read("url", Json::asString));
    }
}