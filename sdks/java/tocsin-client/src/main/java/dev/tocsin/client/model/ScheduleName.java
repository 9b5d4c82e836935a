// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Identifies a schedule.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 */
public record ScheduleName(
        String namespace,
        String scheduleId) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @return the request
     */
    public static ScheduleName of(String namespace, String scheduleId) {
        return new ScheduleName(
                namespace,
                scheduleId);
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
        return Json.object(sent);
    }
}