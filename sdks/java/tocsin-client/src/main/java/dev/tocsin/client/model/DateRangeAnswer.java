// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * Dates from the first to the last.
 *
 * @param first The first date.
 * @param last The last date.
 */
public record DateRangeAnswer(
        String first,
        String last) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DateRangeAnswer fromJson(Json source) {
        return new DateRangeAnswer(
                source.read("first", Json::asString),
                source.read("last", Json::asString));
    }
}