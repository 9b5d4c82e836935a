// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Timers to create in one request; an invalid one fails without affecting the others.
 *
 * @param timers The timers to create.
 */
public record BatchCreateTimers(
        List<CreateTimer> timers) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param timers The timers to create.
     * @return the request
     */
    public static BatchCreateTimers of(List<CreateTimer> timers) {
        return new BatchCreateTimers(
                timers);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("timers", Json.array(timers, CreateTimer::toJson));
        return Json.object(sent);
    }
}