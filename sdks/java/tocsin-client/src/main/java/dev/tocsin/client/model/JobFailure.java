// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * A row that could not be changed, and why.
 *
 * @param namespace namespace
 * @param id id
 * @param error error
 */
public record JobFailure(
        String namespace,
        String id,
        String error) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static JobFailure fromJson(Json source) {
        return new JobFailure(
                source.read("namespace", Json::asString),
                source.read("id", Json::asString),
                source.read("error", Json::asString));
    }
}