// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A calendar: its dates are those of <code>dates</code>, <code>ranges</code> and <code>weekdays</code>
 * together.
 *
 * @param namespace The namespace's name.
 * @param name The calendar's name, unique in its namespace.
 * @param timeZone The IANA time zone in which its dates begin and end. Default UTC.
 * @param dates Single dates, as 2027-12-25.
 * @param ranges Ranges of dates, both ends included.
 * @param weekdays Weekdays, of every week.
 * @param version 1, and one more with each change.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param updatedAt An RFC 3339 instant with a time zone.
 * @param description What it is for, in one line; shown in lists. Null if absent.
 * @param managedBy The declaration that it comes from, such as the name of a repository. Null if absent.
 */
public record Calendar(
        String namespace,
        String name,
        String timeZone,
        List<String> dates,
        List<DateRangeAnswer> ranges,
        List<String> weekdays,
        long version,
        Instant createdAt,
        Instant updatedAt,
        @Nullable String description,
        @Nullable String managedBy) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static Calendar fromJson(Json source) {
        return new Calendar(
                source.read("namespace", Json::asString),
                source.read("name", Json::asString),
                source.read("timeZone", Json::asString),
                source.read("dates", json -> json.asList(Json::asString)),
                source.read("ranges", json -> json.asList(DateRangeAnswer::fromJson)),
                source.read("weekdays", json -> json.asList(Json::asString)),
                source.read("version", Json::asLong),
                source.read("createdAt", Values::toInstant),
                source.read("updatedAt", Values::toInstant),
                source.readOptional("description", Json::asString),
                source.readOptional("managedBy", Json::asString));
    }
}