// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * Groups of failures, those with most failures first.
 *
 * @param groups The groups.
 * @param furtherGroups How many groups beyond the limit there are.
 * @param count How many failures there are in all groups.
 * @param atLeast Whether there are older failures that were not counted: at most 50,000 are.
 */
public record FailureList(
        List<FailureGroup> groups,
        long furtherGroups,
        long count,
        boolean atLeast) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FailureList fromJson(Json source) {
        return new FailureList(
                source.read("groups", json -> json.asList(FailureGroup::fromJson)),
                source.read("furtherGroups", Json::asLong),
                source.read("count", Json::asLong),
                source.read("atLeast", Json::asBoolean));
    }
}