// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A rule to delete.
 *
 * @param namespace The namespace's name.
 * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 */
public record DeleteFlow(
        String namespace,
        String match,
        Field<Long> expectedVersion) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
     * @return the request
     */
    public static DeleteFlow of(String namespace, String match) {
        return new DeleteFlow(
                namespace,
                match,
                Field.absent());
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteFlow expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public DeleteFlow expectedVersion(Field<Long> expectedVersion) {
        return new DeleteFlow(
                namespace,
                match,
                expectedVersion);
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
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        return Json.object(sent);
    }
}