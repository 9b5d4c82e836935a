// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * The quotas of a namespace; absent ones do not exist.
 *
 * @param pending Its timers that may be pending at once; not schedules. Null if absent.
 * @param createsPerSecond Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth
 * at once. Null if absent.
 * @param payloadBytes Bytes that the payload or the raw body of one timer or schedule may have. Null if absent.
 */
public record QuotasAnswer(
        @Nullable Long pending,
        @Nullable Long createsPerSecond,
        @Nullable Long payloadBytes) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static QuotasAnswer fromJson(Json source) {
        return new QuotasAnswer(
                source.readOptional("pending", Json::asLong),
                source.readOptional("createsPerSecond", Json::asLong),
                source.readOptional("payloadBytes", Json::asLong));
    }
}