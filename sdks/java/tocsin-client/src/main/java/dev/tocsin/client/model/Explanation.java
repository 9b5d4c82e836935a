// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * Where a timer is, what it waits for, and what happens next.
 *
 * @param state state
 * @param shard The shard that holds the timer.
 * @param owner The node that owns the shard; null if none does. Null if absent.
 * @param sentence All of this in English.
 * @param waitsFor What has to happen before the timer moves on; absent if it has finished, or that is not known. Null if absent.
 * @param next When the next attempt is due, or the one in flight times out; absent if that is not known. Null if absent.
 * @param attempt The number of the attempt that is in flight; absent if none is. Null if absent.
 * @param since When the attempt in flight began, or else when the timer became due; in the state
 * <code>unknown</code>, since when the owner has not answered. Absent if the timer is not due, or that
 * is not known. Null if absent.
 */
public record Explanation(
        TimerState state,
        long shard,
        @Nullable String owner,
        String sentence,
        @Nullable TimerWaitsFor waitsFor,
        @Nullable String next,
        @Nullable Long attempt,
        @Nullable String since) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Explanation fromJson(Json source) {
        return new Explanation(
                source.read("state", TimerState::fromJson),
                source.read("shard", Json::asLong),
                source.readNullable("owner", Json::asString),
                source.read("sentence", Json::asString),
                source.readOptional("waitsFor", TimerWaitsFor::fromJson),
                source.readOptional("next", Json::asString),
                source.readOptional("attempt", Json::asLong),
                source.readOptional("since", Json::asString));
    }
}