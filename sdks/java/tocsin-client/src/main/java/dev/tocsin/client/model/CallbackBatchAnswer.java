// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * How due timers of one receiver are sent together.
 *
 * @param max How many timers one request has at most.
 * @param linger How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
 */
public record CallbackBatchAnswer(
        long max,
        String linger) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static CallbackBatchAnswer fromJson(Json source) {
        return new CallbackBatchAnswer(
                source.read("max", Json::asLong),
                source.read("linger", Json::asString));
    }
}