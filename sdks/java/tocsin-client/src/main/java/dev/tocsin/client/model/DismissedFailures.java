// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * What was dismissed.
 *
 * @param dismissed How many failures. Ids that were not listed any more count, too.
 * @param more Whether there may be more of the group: at most 50,000 are read, and of service calls 5,000
 * dismissed. Repeat the request.
 */
public record DismissedFailures(
        long dismissed,
        boolean more) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DismissedFailures fromJson(Json source) {
        return new DismissedFailures(
                source.read("dismissed", Json::asLong),
                source.read("more", Json::asBoolean));
    }
}