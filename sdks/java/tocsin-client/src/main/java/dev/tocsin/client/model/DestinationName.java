// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Names a destination.
 *
 * @param destination An http or https URL, of which scheme, host and port count.
 */
public record DestinationName(
        String destination) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param destination An http or https URL, of which scheme, host and port count.
     * @return the request
     */
    public static DestinationName of(String destination) {
        return new DestinationName(
                destination);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("destination", Json.of(destination));
        return Json.object(sent);
    }
}