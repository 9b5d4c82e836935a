// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of timers, ordered by <code>executeAt</code>. A page without <code>nextCursor</code> is the
 * last. A page may be empty without being the last, and is shorter than its limit if payloads are
 * large.
 *
 * @param timers timers
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record TimerPage(
        List<Timer> timers,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static TimerPage fromJson(Json source) {
        return new TimerPage(
                source.read("timers", json -> json.asList(Timer::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}