// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * So many attempts within a time, evenly spread.
 *
 * @param count How many attempts may begin in that time.
 * @param per The time: 1s to 1d.
 */
public record FlowRate(
        long count,
        Duration per) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param count How many attempts may begin in that time.
     * @param per The time: 1s to 1d.
     * @return the request
     */
    public static FlowRate of(long count, Duration per) {
        return new FlowRate(
                count,
                per);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("count", Json.of(count));
        sent.put("per", Values.toJson(per));
        return Json.object(sent);
    }
}