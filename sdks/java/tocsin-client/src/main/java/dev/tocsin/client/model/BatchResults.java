// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * One result for each timer sent, in the same order.
 *
 * @param results results
 */
public record BatchResults(
        List<BatchResult> results) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static BatchResults fromJson(Json source) {
        return new BatchResults(
                source.read("results", json -> json.asList(BatchResult::fromJson)));
    }
}