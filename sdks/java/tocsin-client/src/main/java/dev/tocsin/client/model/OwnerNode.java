// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * A node of the cluster, for clients that send writes to the owners of shards.
 *
 * @param apiUrl The URL of the node's API, from its setting <code>advertise_api</code>; null if it has none of its
 * own. Null if absent.
 * @param alive alive
 * @param leaving Whether the node is handing over its shards.
 * @param skewed Whether its clock differs from the store's, so that other nodes take its shards.
 */
public record OwnerNode(
        @Nullable String apiUrl,
        boolean alive,
        boolean leaving,
        boolean skewed) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static OwnerNode fromJson(Json source) {
        return new OwnerNode(
                source.readNullable("apiUrl", Json::asString),
                source.read("alive", Json::asBoolean),
                source.read("leaving", Json::asBoolean),
                source.read("skewed", Json::asBoolean));
    }
}