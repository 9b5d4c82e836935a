// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Names a credential.
 *
 * @param namespace The namespace's name.
 * @param name The credential's name, unique in its namespace.
 */
public record CredentialId(
        String namespace,
        String name) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param name The credential's name, unique in its namespace.
     * @return the request
     */
    public static CredentialId of(String namespace, String name) {
        return new CredentialId(
                namespace,
                name);
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
        return Json.object(sent);
    }
}