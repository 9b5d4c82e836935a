// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * Limits of attempts. What is absent is not limited.
 *
 * @param rate rate Null if absent.
 * @param burst How many attempts may begin at once; absent without a rate. Null if absent.
 * @param parallelism How many attempts may be in flight at once. Null if absent.
 * @param ordered True where the timers of each key begin one at a time, in the order of their instants; else absent. Null if absent.
 */
public record FlowLimitsAnswer(
        @Nullable FlowRateAnswer rate,
        @Nullable Long burst,
        @Nullable Long parallelism,
        @Nullable Boolean ordered) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static FlowLimitsAnswer fromJson(Json source) {
        return new FlowLimitsAnswer(
                source.readOptional("rate", FlowRateAnswer::fromJson),
                source.readOptional("burst", Json::asLong),
                source.readOptional("parallelism", Json::asLong),
                source.readOptional("ordered", Json::asBoolean));
    }
}