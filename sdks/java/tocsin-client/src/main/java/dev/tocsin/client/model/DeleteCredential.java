// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A credential to delete.
 *
 * @param namespace The namespace's name.
 * @param name The credential's name, unique in its namespace.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 */
public record DeleteCredential(
        String namespace,
        String name,
        Field<Long> expectedVersion) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param name The credential's name, unique in its namespace.
     * @return the request
     */
    public static DeleteCredential of(String namespace, String name) {
        return new DeleteCredential(
                namespace,
                name,
                Field.absent());
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteCredential expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public DeleteCredential expectedVersion(Field<Long> expectedVersion) {
        return new DeleteCredential(
                namespace,
                name,
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
        sent.put("name", Json.of(name));
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        return Json.object(sent);
    }
}