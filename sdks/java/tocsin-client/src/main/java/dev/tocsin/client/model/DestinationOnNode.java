// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * A destination as one node knows it.
 *
 * @param node The node's name.
 * @param inFlight Attempts that are in flight.
 * @param limit How many attempts may be in flight at once; it shrinks while the destination does not answer.
 * @param waiting Due timers that wait in memory; further ones may wait in the store.
 * @param attempts Attempts that have ended within the last 30 seconds.
 * @param failures Those of them without a response, or with a status of 500 and above.
 * @param breaker breaker
 * @param nextProbeAt When the next probe begins; absent unless the breaker is open. Null if absent.
 */
public record DestinationOnNode(
        String node,
        long inFlight,
        long limit,
        long waiting,
        long attempts,
        long failures,
        BreakerState breaker,
        @Nullable String nextProbeAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static DestinationOnNode fromJson(Json source) {
        return new DestinationOnNode(
                source.read("node", Json::asString),
                source.read("inFlight", Json::asLong),
                source.read("limit", Json::asLong),
                source.read("waiting", Json::asLong),
                source.read("attempts", Json::asLong),
                source.read("failures", Json::asLong),
                source.read("breaker", BreakerState::fromJson),
                source.readOptional("nextProbeAt", Json::asString));
    }
}