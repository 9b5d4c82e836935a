// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Dates from the first to the last.
 *
 * @param first The first date.
 * @param last The last date.
 */
public record DateRange(
        String first,
        String last) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param first The first date.
     * @param last The last date.
     * @return the request
     */
    public static DateRange of(String first, String last) {
        return new DateRange(
                first,
                last);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("first", Json.of(first));
        sent.put("last", Json.of(last));
        return Json.object(sent);
    }
}