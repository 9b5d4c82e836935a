// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A timer whose runs are wanted.
 *
 * @param namespace The namespace's name.
 * @param timerId The timer's id, unique in its namespace.
 * @param limit Maximum number of runs on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record TimerHistory(
        String namespace,
        String timerId,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param timerId The timer's id, unique in its namespace.
     * @return the request
     */
    public static TimerHistory of(String namespace, String timerId) {
        return new TimerHistory(
                namespace,
                timerId,
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of runs on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public TimerHistory limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of runs on the page. Default 100.
     * @return a copy with it
     */
    public TimerHistory limit(Field<Long> limit) {
        return new TimerHistory(
                namespace,
                timerId,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public TimerHistory cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public TimerHistory cursor(Field<String> cursor) {
        return new TimerHistory(
                namespace,
                timerId,
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
        sent.put("timerId", Json.of(timerId));
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}