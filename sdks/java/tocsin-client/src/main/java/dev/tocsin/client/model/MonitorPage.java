// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of monitors, by namespace and id. A page without <code>nextCursor</code> is the last.
 *
 * @param monitors monitors
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record MonitorPage(
        List<Monitor> monitors,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorPage fromJson(Json source) {
        return new MonitorPage(
                source.read("monitors", json -> json.asList(Monitor::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}