// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The monitor whose periods are wanted.
 *
 * @param namespace The namespace's name.
 * @param id The monitor's id, unique among its namespace's monitors.
 * @param limit Maximum number of periods on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record MonitorHistory(
        String namespace,
        String id,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The monitor's id, unique among its namespace's monitors.
     * @return the request
     */
    public static MonitorHistory of(String namespace, String id) {
        return new MonitorHistory(
                namespace,
                id,
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of periods on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public MonitorHistory limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of periods on the page. Default 100.
     * @return a copy with it
     */
    public MonitorHistory limit(Field<Long> limit) {
        return new MonitorHistory(
                namespace,
                id,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public MonitorHistory cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public MonitorHistory cursor(Field<String> cursor) {
        return new MonitorHistory(
                namespace,
                id,
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
        sent.put("id", Json.of(id));
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}