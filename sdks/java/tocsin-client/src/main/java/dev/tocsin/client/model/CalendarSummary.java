// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A calendar without its dates.
 *
 * @param namespace The namespace's name.
 * @param name The calendar's name, unique in its namespace.
 * @param timeZone The IANA time zone in which its dates begin and end. Default UTC.
 * @param dateCount How many single dates it has.
 * @param rangeCount How many ranges it has.
 * @param weekdays Weekdays, of every week.
 * @param version 1, and one more with each change.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param firstDate The first of its dates and ranges; absent if it has none. Null if absent.
 * @param lastDate The last of them: a calendar that ends soon has to be put again. Null if absent.
 * @param description What it is for, in one line; shown in lists. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record CalendarSummary(
        String namespace,
        String name,
        String timeZone,
        long dateCount,
        long rangeCount,
        List<String> weekdays,
        long version,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String firstDate,
        @Nullable String lastDate,
        @Nullable String description,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static CalendarSummary fromJson(Json source) {
        return new CalendarSummary(
                source.read("namespace", Json::asString),
                source.read("name", Json::asString),
                source.read("timeZone", Json::asString),
                source.read("dateCount", Json::asLong),
                source.read("rangeCount", Json::asLong),
                source.read("weekdays", json -> json.asList(Json::asString)),
                source.read("version", Json::asLong),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("firstDate", Json::asString),
                source.readOptional("lastDate", Json::asString),
                source.readOptional("description", Json::asString),
                source.readOptional("managedBy", Json::asString));
    }
}