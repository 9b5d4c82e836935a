// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The schedule whose occurrences are wanted.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param limit Maximum number of occurrences on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ScheduleHistory(
        String namespace,
        String scheduleId,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @return the request
     */
    public static ScheduleHistory of(String namespace, String scheduleId) {
        return new ScheduleHistory(
                namespace,
                scheduleId,
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of occurrences on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ScheduleHistory limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of occurrences on the page. Default 100.
     * @return a copy with it
     */
    public ScheduleHistory limit(Field<Long> limit) {
        return new ScheduleHistory(
                namespace,
                scheduleId,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ScheduleHistory cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ScheduleHistory cursor(Field<String> cursor) {
        return new ScheduleHistory(
                namespace,
                scheduleId,
                limit,
                cursor);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("scheduleId", Json.of(scheduleId));
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}