// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A node's vital data. Latencies and the lag of the event loop are those of the last minute; latencies
 * are null if nothing was measured.
 *
 * @param uptimeS Seconds since the process started.
 * @param cpuCores Processor cores in use, over the last minute.
 * @param memoryBytes Memory of the process in RAM; null if the system does not report it. Null if absent.
 * @param loopLagMs By how much the event loop was late at most, in ms.
 * @param readP50Ms Median of the time that a small read of the store takes, in ms. Null if absent.
 * @param readP99Ms Its 99th percentile. Null if absent.
 * @param commitP50Ms Median of the time that a transaction takes, in ms. Null if absent.
 * @param commitP99Ms Its 99th percentile. Null if absent.
 * @param inFlight Callbacks in flight.
 * @param callbackConnections Connections to receivers.
 * @param clientConnections Connections of clients.
 * @param storeError The store's latest error; null if there was none since the start. Null if absent.
 * @param storeErrorAt When that was. Null if absent.
 */
public record Vitals(
        long uptimeS,
        double cpuCores,
        @Nullable Long memoryBytes,
        double loopLagMs,
        @Nullable Double readP50Ms,
        @Nullable Double readP99Ms,
        @Nullable Double commitP50Ms,
        @Nullable Double commitP99Ms,
        long inFlight,
        long callbackConnections,
        long clientConnections,
        @Nullable String storeError,
        @Nullable Instant storeErrorAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Vitals fromJson(Json source) {
        return new Vitals(
                source.read("uptimeS", Json::asLong),
                source.read("cpuCores", Json::asDouble),
                source.readNullable("memoryBytes", Json::asLong),
                source.read("loopLagMs", Json::asDouble),
                source.readNullable("readP50Ms", Json::asDouble),
                source.readNullable("readP99Ms", Json::asDouble),
                source.readNullable("commitP50Ms", Json::asDouble),
                source.readNullable("commitP99Ms", Json::asDouble),
                source.read("inFlight", Json::asLong),
                source.read("callbackConnections", Json::asLong),
                source.read("clientConnections", Json::asLong),
                source.readNullable("storeError", Json::asString),
                source.readNullable("storeErrorAt", Values::toInstant));
    }
}