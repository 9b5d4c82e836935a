// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A page of calendars, by name. A page without <code>nextCursor</code> is the last.
 *
 * @param calendars calendars
 * @param nextCursor <code>nextCursor</code> of the previous page. Null if absent.
 */
public record CalendarPage(
        List<CalendarSummary> calendars,
        @Nullable String nextCursor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static CalendarPage fromJson(Json source) {
        return new CalendarPage(
                source.read("calendars", json -> json.asList(CalendarSummary::fromJson)),
                source.readOptional("nextCursor", Json::asString));
    }
}