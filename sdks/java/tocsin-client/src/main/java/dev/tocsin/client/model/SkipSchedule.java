// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * An instant of a schedule that is still to come.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param instant The instant, exactly as schedules/preview of the schedule shows it.
 */
public record SkipSchedule(
        String namespace,
        String scheduleId,
        Instant instant) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @param instant The instant, exactly as schedules/preview of the schedule shows it.
     * @return the request
     */
    public static SkipSchedule of(String namespace, String scheduleId, Instant instant) {
        return new SkipSchedule(
                namespace,
                scheduleId,
                instant);
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
        sent.put("instant", Values.toJson(instant));
        return Json.object(sent);
    }
}