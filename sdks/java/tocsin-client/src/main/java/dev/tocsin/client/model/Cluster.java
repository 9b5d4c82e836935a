// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Nodes, shards, and whether the responding node is dispatching timers.
 *
 * @param totalShards totalShards
 * @param dispatching dispatching
 * @param nodes nodes
 * @param shards shards
 * @param dispatchPausedReason dispatchPausedReason Null if absent.
 */
public record Cluster(
        long totalShards,
        boolean dispatching,
        List<Node> nodes,
        List<Shard> shards,
        @Nullable String dispatchPausedReason) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Cluster fromJson(Json source) {
        return new Cluster(
                source.read("totalShards", Json::asLong),
                source.read("dispatching", Json::asBoolean),
                source.read("nodes", json -> json.asList(Node::fromJson)),
                source.read("shards", json -> json.asList(Shard::fromJson)),
                source.readOptional("dispatchPausedReason", Json::asString));
    }
}