// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * An invalid field: its path, and what is wrong with it.
 *
 * @param path Dotted path, such as timers[3].executeAt; empty for the body as a whole.
 * @param reason What is wrong, and what is accepted.
 */
public record BadField(
        String path,
        String reason) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static BadField fromJson(Json source) {
        return new BadField(
                source.read("path", Json::asString),
                source.read("reason", Json::asString));
    }
}