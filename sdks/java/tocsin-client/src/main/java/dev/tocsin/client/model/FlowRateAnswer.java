// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * So many attempts within a time, evenly spread.
 *
 * @param count How many attempts may begin in that time.
 * @param per The time: 1s to 1d.
 */
public record FlowRateAnswer(
        long count,
        String per) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FlowRateAnswer fromJson(Json source) {
        return new FlowRateAnswer(
                source.read("count", Json::asLong),
                source.read("per", Json::asString));
    }
}