// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The rotation of the secret that signs a tenant's service calls.
 *
 * @param tenantId The tenant: a UUID of version 7.
 * @param secret The new secret: whsec_ and base64. Without one, the server generates it.
 * @param grace How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
 * @param force Rotate even during the grace period of an earlier rotation. Default false.
 */
public record RotateTenantSecret(
        String tenantId,
        Field<String> secret,
        Field<Duration> grace,
        Field<Boolean> force) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param tenantId The tenant: a UUID of version 7.
     * @return the request
     */
    public static RotateTenantSecret of(String tenantId) {
        return new RotateTenantSecret(
                tenantId,
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The new secret: whsec_ and base64. Without one, the server generates it.
     *
     * @param value its value
     * @return a copy with it
     */
    public RotateTenantSecret secret(String value) {
        return secret(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param secret The new secret: whsec_ and base64. Without one, the server generates it.
     * @return a copy with it
     */
    public RotateTenantSecret secret(Field<String> secret) {
        return new RotateTenantSecret(
                tenantId,
                secret,
                grace,
                force);
    }

    /**
     * How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
     *
     * @param value its value
     * @return a copy with it
     */
    public RotateTenantSecret grace(Duration value) {
        return grace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param grace How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
     * @return a copy with it
     */
    public RotateTenantSecret grace(Field<Duration> grace) {
        return new RotateTenantSecret(
                tenantId,
                secret,
                grace,
                force);
    }

    /**
     * Rotate even during the grace period of an earlier rotation. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public RotateTenantSecret force(boolean value) {
        return force(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param force Rotate even during the grace period of an earlier rotation. Default false.
     * @return a copy with it
     */
    public RotateTenantSecret force(Field<Boolean> force) {
        return new RotateTenantSecret(
                tenantId,
                secret,
                grace,
                force);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("tenantId", Json.of(tenantId));
        secret.putInto(sent, "secret", Json::of);
        grace.putInto(sent, "grace", Values::toJson);
        force.putInto(sent, "force", Json::of);
        return Json.object(sent);
    }
}