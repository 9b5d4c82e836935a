// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The rotation of a namespace's signing secret.
 *
 * @param name The namespace's name.
 * @param secret The new secret: whsec_ and base64. Without one, the server generates it.
 * @param grace How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
 * @param force Rotate even during the grace period of an earlier rotation. Default false.
 */
public record RotateSecret(
        String name,
        Field<String> secret,
        Field<Duration> grace,
        Field<Boolean> force) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param name The namespace's name.
     * @return the request
     */
    public static RotateSecret of(String name) {
        return new RotateSecret(
                name,
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
    public RotateSecret secret(String value) {
        return secret(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param secret The new secret: whsec_ and base64. Without one, the server generates it.
     * @return a copy with it
     */
    public RotateSecret secret(Field<String> secret) {
        return new RotateSecret(
                name,
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
    public RotateSecret grace(Duration value) {
        return grace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param grace How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
     * @return a copy with it
     */
    public RotateSecret grace(Field<Duration> grace) {
        return new RotateSecret(
                name,
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
    public RotateSecret force(boolean value) {
        return force(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param force Rotate even during the grace period of an earlier rotation. Default false.
     * @return a copy with it
     */
    public RotateSecret force(Field<Boolean> force) {
        return new RotateSecret(
                name,
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
        sent.put("name", Json.of(name));
        secret.putInto(sent, "secret", Json::of);
        grace.putInto(sent, "grace", Values::toJson);
        force.putInto(sent, "force", Json::of);
        return Json.object(sent);
    }
}