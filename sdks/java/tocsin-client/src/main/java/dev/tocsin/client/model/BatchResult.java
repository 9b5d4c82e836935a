// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * The result for one timer of a batch: <code>timer</code> or <code>error</code>. With
 * <code>existing</code> or <code>replayed</code> nothing was written: the timer is the existing one
 * that was kept, or the one that an earlier request with the same idempotency key created.
 *
 * @param timer timer Null if absent.
 * @param error error Null if absent.
 * @param existing existing Null if absent.
 * @param replayed replayed Null if absent.
 */
public record BatchResult(
        @Nullable Timer timer,
        @Nullable ItemError error,
        @Nullable Boolean existing,
        @Nullable Boolean replayed) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static BatchResult fromJson(Json source) {
        return new BatchResult(
                source.readOptional("timer", Timer::fromJson),
                source.readOptional("error", ItemError::fromJson),
                source.readOptional("existing", Json::asBoolean),
                source.readOptional("replayed", Json::asBoolean));
    }
}