// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The failed occurrences that fire again.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param instants Their instants.
 */
public record ReplaySchedule(
        String namespace,
        String scheduleId,
        List<Instant> instants) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @param instants Their instants.
     * @return the request
     */
    public static ReplaySchedule of(String namespace, String scheduleId, List<Instant> instants) {
        return new ReplaySchedule(
                namespace,
                scheduleId,
                instants);
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
        sent.put("instants", Json.array(instants, Values::toJson));
        return Json.object(sent);
    }
}