// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How due timers of one receiver are sent together.
 *
 * @param max How many timers one request has at most.
 * @param linger How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
 */
public record CallbackBatch(
        long max,
        Field<Duration> linger) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param max How many timers one request has at most.
     * @return the request
     */
    public static CallbackBatch of(long max) {
        return new CallbackBatch(
                max,
                Field.absent());
    }

    /**
     * How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
     *
     * @param value its value
     * @return a copy with it
     */
    public CallbackBatch linger(Duration value) {
        return linger(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param linger How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
     * @return a copy with it
     */
    public CallbackBatch linger(Field<Duration> linger) {
        return new CallbackBatch(
                max,
                linger);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("max", Json.of(max));
        linger.putInto(sent, "linger", Values::toJson);
        return Json.object(sent);
    }
}