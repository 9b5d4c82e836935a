// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The namespace whose rules are wanted.
 *
 * @param namespace The namespace's name.
 * @param limit Maximum number of rules on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListFlows(
        String namespace,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @return the request
     */
    public static ListFlows in(String namespace) {
        return new ListFlows(
                namespace,
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of rules on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFlows limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of rules on the page. Default 100.
     * @return a copy with it
     */
    public ListFlows limit(Field<Long> limit) {
        return new ListFlows(
                namespace,
                limit,
                cursor);
    }

    /**
     * <code>nextCursor</code> of the previous page.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListFlows cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListFlows cursor(Field<String> cursor) {
        return new ListFlows(
                namespace,
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
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}