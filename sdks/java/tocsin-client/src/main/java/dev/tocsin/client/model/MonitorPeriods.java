// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of periods, newest first. A page without <code>nextCursor</code> is the last.
 *
 * @param periods periods
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record MonitorPeriods(
        List<MonitorPeriod> periods,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorPeriods fromJson(Json source) {
        return new MonitorPeriods(
                source.read("periods", json -> json.asList(MonitorPeriod::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}