// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The range of instants that fire once more.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param after Only instants at or after this one.
 * @param before Only instants before this one.
 */
public record BackfillSchedule(
        String namespace,
        String scheduleId,
        Instant after,
        Instant before) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @param after Only instants at or after this one.
     * @param before Only instants before this one.
     * @return the request
     */
    public static BackfillSchedule of(String namespace, String scheduleId, Instant after, Instant before) {
        return new BackfillSchedule(
                namespace,
                scheduleId,
                after,
                before);
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
        sent.put("after", Values.toJson(after));
        sent.put("before", Values.toJson(before));
        return Json.object(sent);
    }
}