// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How many destinations are wanted.
 *
 * @param limit Maximum number of destinations. Default 100.
 */
public record ListDestinations(
        Field<Long> limit) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static ListDestinations all() {
        return new ListDestinations(
                Field.absent());
    }

    /**
     * Maximum number of destinations. Default 100.
     *
     * @param value its value
     * @return a copy with it
     */
    public ListDestinations limit(long value) {
        return limit(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limit Maximum number of destinations. Default 100.
     * @return a copy with it
     */
    public ListDestinations limit(Field<Long> limit) {
        return new ListDestinations(
                limit);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        limit.putInto(sent, "limit", Json::of);
        return Json.object(sent);
    }
}