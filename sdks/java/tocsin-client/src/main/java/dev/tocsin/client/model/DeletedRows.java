// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * What was deleted.
 *
 * @param deleted How many rows.
 * @param more Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat
 * it.
 */
public record DeletedRows(
        long deleted,
        boolean more) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DeletedRows fromJson(Json source) {
        return new DeletedRows(
                source.read("deleted", Json::asLong),
                source.read("more", Json::asBoolean));
    }
}