// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Identifies a timer.
 *
 * @param namespace The namespace's name.
 * @param timerId The timer's id, unique in its namespace.
 */
public record TimerName(
        String namespace,
        String timerId) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param timerId The timer's id, unique in its namespace.
     * @return the request
     */
    public static TimerName of(String namespace, String timerId) {
        return new TimerName(
                namespace,
                timerId);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("timerId", Json.of(timerId));
        return Json.object(sent);
    }
}