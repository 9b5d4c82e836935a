// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The namespace whose credentials are wanted.
 *
 * @param namespace The namespace's name.
 * @param limit Maximum number of credentials on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListCredentials(
        String namespace,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @return the request
     */
    public static ListCredentials in(String namespace) {
        return new ListCredentials(
                namespace,
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of credentials on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListCredentials limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of credentials on the page. Default 100.
     * @return a copy with it
     */
    public ListCredentials limit(Field<Long> limit) {
        return new ListCredentials(
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
    public ListCredentials cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListCredentials cursor(Field<String> cursor) {
        return new ListCredentials(
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