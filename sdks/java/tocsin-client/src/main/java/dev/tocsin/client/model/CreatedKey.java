// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A new API key. Only this response contains the key itself.
 *
 * @param keyId The key's id, the part between its first two underscores.
 * @param role What the key allows; each role includes the previous ones.
 * @param name What the key is for; may be empty.
 * @param namespaces Limits the key to these namespaces.
 * @param tenants Limits the key to these tenants. If both lists are empty, the key is not limited.
 * @param createdAt An RFC 3339 instant with a time zone.
 * @param key The key; send it as <code>Authorization: Bearer &lt;key&gt;</code>.
 * @param expiresAt When the key expires; absent: never. Null if absent.
 * @param operations Limits the key to these operations: names such as <code>timers/create</code>, which are the paths
 * below the version, for service calls <code>calls/submit</code> and its like; groups such as
 * <code>timers/*</code>; <code>read</code>, for all that a key of role read may use. Null if absent.
 * @param sources Limits the key to requests from these addresses and networks. The client's address counts, which
 * behind a proxy the setting <code>trusted_proxies</code> finds. Null if absent.
 * @param lastUsedAt When the key was used last, accurate to an hour; absent: it was not used yet. Null if absent.
 */
public record CreatedKey(
        String keyId,
        KeyRole role,
        String name,
        List<String> namespaces,
        List<String> tenants,
        Instant createdAt,
        String key,
        @Nullable Instant expiresAt,
        @Nullable List<String> operations,
        @Nullable List<String> sources,
        @Nullable String lastUsedAt) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static CreatedKey fromJson(Json source) {
        return new CreatedKey(
                source.read("keyId", Json::asString),
                source.read("role", KeyRole::fromJson),
                source.read("name", Json::asString),
                source.read("namespaces", json -> json.asList(Json::asString)),
                source.read("tenants", json -> json.asList(Json::asString)),
                source.read("createdAt", Values::toInstant),
                source.read("key", Json::asString),
                source.readOptional("expiresAt", Values::toInstant),
                source.readOptional("operations", json -> json.asList(Json::asString)),
                source.readOptional("sources", json -> json.asList(Json::asString)),
                source.readOptional("lastUsedAt", Json::asString));
    }
}