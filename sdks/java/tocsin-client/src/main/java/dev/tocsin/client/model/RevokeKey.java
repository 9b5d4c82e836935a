// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The key to revoke.
 *
 * @param keyId The key's id, the part between its first two underscores.
 */
public record RevokeKey(
        String keyId) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param keyId The key's id, the part between its first two underscores.
     * @return the request
     */
    public static RevokeKey of(String keyId) {
        return new RevokeKey(
                keyId);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("keyId", Json.of(keyId));
        return Json.object(sent);
    }
}