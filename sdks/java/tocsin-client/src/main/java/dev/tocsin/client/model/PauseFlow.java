// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A rule to pause.
 *
 * @param namespace The namespace's name.
 * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
 * @param until When it goes on; without it, when it is resumed.
 */
public record PauseFlow(
        String namespace,
        String match,
        Field<Instant> until) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
     * @return the request
     */
    public static PauseFlow of(String namespace, String match) {
        return new PauseFlow(
                namespace,
                match,
                Field.absent());
    }

    /**
     * When it goes on; without it, when it is resumed.
     *
     * @param value its value
     * @return a copy with it
     */
    public PauseFlow until(Instant value) {
        return until(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param until When it goes on; without it, when it is resumed.
     * @return a copy with it
     */
    public PauseFlow until(Field<Instant> until) {
        return new PauseFlow(
                namespace,
                match,
                until);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("match", Json.of(match));
        until.putInto(sent, "until", Values::toJson);
        return Json.object(sent);
    }
}