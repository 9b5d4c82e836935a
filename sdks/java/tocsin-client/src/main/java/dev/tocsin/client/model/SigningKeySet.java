// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * A JWK set (RFC 7517).
 *
 * @param keys keys
 */
public record SigningKeySet(
        List<SigningKey> keys) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static SigningKeySet fromJson(Json source) {
        return new SigningKeySet(
                source.read("keys", json -> json.asList(SigningKey::fromJson)));
    }
}