// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Which dead rows to list.
 *
 * @param namespace The namespace's name.
 * @param limit Maximum number of rows on the page. Default 100.
 * @param cursor <code>nextCursor</code> of the previous page.
 */
public record ListInbox(
        Field<String> namespace,
        Field<Long> limit,
        Field<String> cursor) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListInbox all() {
        return new ListInbox(
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The namespace's name.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListInbox namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name.
     * @return a copy with it
     */
    public ListInbox namespace(Field<String> namespace) {
        return new ListInbox(
                namespace,
                limit,
                cursor);
    }

    /**
     * Maximum number of rows on the page. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListInbox limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of rows on the page. Default 100.
     * @return a copy with it
     */
    public ListInbox limit(Field<Long> limit) {
        return new ListInbox(
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
    public ListInbox cursor(String value) {
        return cursor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cursor <code>nextCursor</code> of the previous page.
     * @return a copy with it
     */
    public ListInbox cursor(Field<String> cursor) {
        return new ListInbox(
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
        namespace.putInto(sent, "namespace", Json::of);
        limit.putInto(sent, "limit", Json::of);
        cursor.putInto(sent, "cursor", Json::of);
        return Json.object(sent);
    }
}