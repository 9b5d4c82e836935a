// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * Why a timer of a batch was not created, or not replayed.
 *
 * @param error A stable code.
 * @param message message
 * @param status The HTTP status that a request for this timer alone would have returned.
 * @param errors errors
 */
public record ItemError(
        String error,
        String message,
        long status,
        List<BadField> errors) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ItemError fromJson(Json source) {
        return new ItemError(
                source.read("error", Json::asString),
                source.read("message", Json::asString),
                source.read("status", Json::asLong),
                source.read("errors", json -> json.asList(BadField::fromJson)));
    }
}