// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * Destinations, those that need attention first.
 *
 * @param destinations destinations
 * @param further How many more there are, at least; raise limit.
 */
public record DestinationList(
        List<Destination> destinations,
        long further) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DestinationList fromJson(Json source) {
        return new DestinationList(
                source.read("destinations", json -> json.asList(Destination::fromJson)),
                source.read("further", Json::asLong));
    }
}