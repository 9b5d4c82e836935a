// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * The API keys within the scope of the caller's key, oldest first, including expired ones.
 *
 * @param keys keys
 */
public record KeyList(
        List<ShownKey> keys) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static KeyList fromJson(Json source) {
        return new KeyList(
                source.read("keys", json -> json.asList(ShownKey::fromJson)));
    }
}