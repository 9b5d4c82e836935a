// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Which node owns each shard, as the responding node last read it. <code>owners</code> has for each
 * shard, by its number, the index of its owner in <code>nodes</code>, or null while none is known.
 *
 * @param totalShards totalShards
 * @param nodes nodes
 * @param owners owners
 */
public record ShardOwners(
        long totalShards,
        List<OwnerNode> nodes,
        List<@Nullable Long> owners) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ShardOwners fromJson(Json source) {
        return new ShardOwners(
                source.read("totalShards", Json::asLong),
                source.read("nodes", json -> json.asList(OwnerNode::fromJson)),
                source.read("owners", json -> json.asList(Json.nullable(Json::asLong))));
    }
}