// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A shard; the statistics of its window are present only if its owner could be reached.
 * <code>version</code> is its epoch.
 *
 * @param shardId shardId
 * @param version version
 * @param owner owner Null if absent.
 * @param ownedHere ownedHere
 * @param windowTimers windowTimers Null if absent.
 * @param inFlight inFlight Null if absent.
 * @param completeTo An RFC 3339 instant with a time zone. Null if absent.
 * @param lagMs How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if
 * later. Null if absent.
 */
public record Shard(
        long shardId,
        long version,
        @Nullable String owner,
        boolean ownedHere,
        @Nullable Long windowTimers,
        @Nullable Long inFlight,
        @Nullable Instant completeTo,
        @Nullable Double lagMs) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Shard fromJson(Json source) {
        return new Shard(
                source.read("shardId", Json::asLong),
                source.read("version", Json::asLong),
                source.readNullable("owner", Json::asString),
                source.read("ownedHere", Json::asBoolean),
                source.readOptional("windowTimers", Json::asLong),
                source.readOptional("inFlight", Json::asLong),
                source.readOptional("completeTo", Values::toInstant),
                source.readOptional("lagMs", Json::asDouble));
    }
}