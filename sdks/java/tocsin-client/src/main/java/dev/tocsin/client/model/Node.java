// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A node of the cluster. <code>self</code> marks the node that responds. Fields that only the node
 * itself knows are null if it could not be reached: <code>version</code> (of its release),
 * <code>dispatching</code>, <code>agent</code> (whether it runs the service agent),
 * <code>windowTimers</code>, <code>lagMs</code>, <code>largestShardBytes</code>.
 *
 * @param node node
 * @param incarnation incarnation
 * @param address address
 * @param alive alive
 * @param self self
 * @param shards shards
 * @param leaving Whether the node is handing over its shards.
 * @param skewed Whether its clock differs from the store's, so that other nodes take its shards if there are any.
 * @param version version Null if absent.
 * @param dispatching dispatching Null if absent.
 * @param agent agent Null if absent.
 * @param windowTimers windowTimers Null if absent.
 * @param lagMs How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if
 * later. Null if absent.
 * @param sharesName Whether another live node has the same name: then only one of them gets shards.
 * @param secretDiffers Whether its <code>cluster.secret</code> differs from that of nodes that started earlier, so that it
 * owns no shards.
 * @param largestShardBytes Size of the largest shard, as the database reported it to the node. Null with databases that report
 * no sizes. Null if absent.
 * @param pausedSince Since when it fires nothing; null while it fires, and if it could not be reached. Null if absent.
 * @param pausedReason Why it fires nothing: starting, lease (the store did not answer in time), clock_skew, clock_jump,
 * unwritten_results or stopped; null like pausedSince. Null if absent.
 * @param vitals Null if the node could not be reached. Null if absent.
 */
public record Node(
        String node,
        String incarnation,
        String address,
        boolean alive,
        boolean self,
        long shards,
        boolean leaving,
        boolean skewed,
        @Nullable String version,
        @Nullable Boolean dispatching,
        @Nullable Boolean agent,
        @Nullable Long windowTimers,
        @Nullable Double lagMs,
        boolean sharesName,
        boolean secretDiffers,
        @Nullable Long largestShardBytes,
        @Nullable Instant pausedSince,
        @Nullable String pausedReason,
        @Nullable Vitals vitals) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Node fromJson(Json source) {
        return new Node(
                source.read("node", Json::asString),
                source.read("incarnation", Json::asString),
                source.read("address", Json::asString),
                source.read("alive", Json::asBoolean),
                source.read("self", Json::asBoolean),
                source.read("shards", Json::asLong),
                source.read("leaving", Json::asBoolean),
                source.read("skewed", Json::asBoolean),
                source.readNullable("version", Json::asString),
                source.readNullable("dispatching", Json::asBoolean),
                source.readNullable("agent", Json::asBoolean),
                source.readNullable("windowTimers", Json::asLong),
                source.readNullable("lagMs", Json::asDouble),
                source.read("sharesName", Json::asBoolean),
                source.read("secretDiffers", Json::asBoolean),
                source.readNullable("largestShardBytes", Json::asLong),
                source.readNullable("pausedSince", Values::toInstant),
                source.readNullable("pausedReason", Json::asString),
                source.readNullable("vitals", Vitals::fromJson));
    }
}