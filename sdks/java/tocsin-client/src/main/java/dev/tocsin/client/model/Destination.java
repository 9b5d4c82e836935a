// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A scheme, host and port to which timers are sent; the numbers are those of all nodes together.
 *
 * @param destination Scheme, host and port.
 * @param paused Whether no attempt begins until it is resumed.
 * @param inFlight Attempts that are in flight.
 * @param limit How many attempts may be in flight at once; it shrinks while the destination does not answer.
 * @param waiting Due timers that wait in memory; further ones may wait in the store.
 * @param attempts Attempts that have ended within the last 30 seconds.
 * @param failures Those of them without a response, or with a status of 500 and above.
 * @param breaker <code>open</code>: nearly all attempts failed, and none begins before the next probe;
 * <code>half_open</code>: probes begin, one at a time; <code>closed</code>: attempts begin as usual.
 * That of the node where it is the worst.
 * @param nodes What each node knows of it, without those that know nothing.
 * @param complete Whether all nodes have answered; otherwise more may be in flight and wait than is shown.
 * @param pausedAt Since when it is paused. Null if absent.
 * @param nextProbeAt When the next probe begins; absent unless the breaker is open. Null if absent.
 * @param lastError The last failure; absent if there was none lately. Null if absent.
 * @param lastErrorAt When that was. Null if absent.
 * @param lastSuccessAt When an attempt last succeeded; absent if none did lately. Null if absent.
 */
public record Destination(
        String destination,
        boolean paused,
        long inFlight,
        long limit,
        long waiting,
        long attempts,
        long failures,
        BreakerState breaker,
        List<DestinationOnNode> nodes,
        boolean complete,
        @Nullable String pausedAt,
        @Nullable String nextProbeAt,
        @Nullable String lastError,
        @Nullable String lastErrorAt,
        @Nullable String lastSuccessAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Destination fromJson(Json source) {
        return new Destination(
                source.read("destination", Json::asString),
                source.read("paused", Json::asBoolean),
                source.read("inFlight", Json::asLong),
                source.read("limit", Json::asLong),
                source.read("waiting", Json::asLong),
                source.read("attempts", Json::asLong),
                source.read("failures", Json::asLong),
                source.read("breaker", BreakerState::fromJson),
                source.read("nodes", json -> json.asList(DestinationOnNode::fromJson)),
                source.read("complete", Json::asBoolean),
                source.readOptional("pausedAt", Json::asString),
                source.readOptional("nextProbeAt", Json::asString),
                source.readOptional("lastError", Json::asString),
                source.readOptional("lastErrorAt", Json::asString),
                source.readOptional("lastSuccessAt", Json::asString));
    }
}