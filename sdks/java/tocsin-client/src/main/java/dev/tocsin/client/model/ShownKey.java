// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An API key without its secret, of which only a hash is stored.
 *
 * @param keyId The key's id, the part between its first two underscores.
 * @param role What the key allows; each role includes the previous ones.
 * @param name What the key is for; may be empty.
 * @param namespaces Limits the key to these namespaces.
 * @param tenants Limits the key to these tenants. If both lists are empty, the key is not limited.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param expiresAt When the key expires; absent: never. Null if absent.
 */
public record ShownKey(
        String keyId,
        KeyRole role,
        String name,
        List<String> namespaces,
        List<String> tenants,
        Instant createdAt,
        @Nullable Instant expiresAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static ShownKey fromJson(Json source) {
        return new ShownKey(
                source.read("keyId", Json::asString),
                source.read("role", KeyRole::fromJson),
                source.read("name", Json::asString),
                source.read("namespaces", json -> json.asList(Json::asString)),
                source.read("tenants", json -> json.asList(Json::asString)),
                source.read("createdAt", Values::toInstant),
                source.readOptional("expiresAt", Values::toInstant));
    }
}