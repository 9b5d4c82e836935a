// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Identifies a monitor.
 *
 * @param namespace The namespace's name.
 * @param id The monitor's id, unique among its namespace's monitors.
 */
public record MonitorName(
        String namespace,
        String id) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The monitor's id, unique among its namespace's monitors.
     * @return the request
     */
    public static MonitorName of(String namespace, String id) {
        return new MonitorName(
                namespace,
                id);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("id", Json.of(id));
        return Json.object(sent);
    }
}