// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The new secret. Only this response shows it.
 *
 * @param tenantId The tenant.
 * @param secret The new secret, for the called services.
 * @param previousUntil Until when the previous secret keeps signing; absent if only the new one signs. Null if absent.
 */
public record RotatedTenantSecret(
        String tenantId,
        String secret,
        @Nullable Instant previousUntil) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static RotatedTenantSecret fromJson(Json source) {
        return new RotatedTenantSecret(
                source.read("tenantId", Json::asString),
                source.read("secret", Json::asString),
                source.readOptional("previousUntil", Values::toInstant));
    }
}