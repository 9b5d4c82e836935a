// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * What is tried again.
 *
 * @param replayed How many rows.
 * @param more Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat
 * it.
 */
public record ReplayedRows(
        long replayed,
        boolean more) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ReplayedRows fromJson(Json source) {
        return new ReplayedRows(
                source.read("replayed", Json::asLong),
                source.read("more", Json::asBoolean));
    }
}