// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Quotas of a namespace; null removes one, and an absent one stays unchanged. What exceeds one is
 * refused with QUOTA_EXCEEDED.
 *
 * @param pending Its timers that may be pending at once; not schedules.
 * @param createsPerSecond Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth
 * at once.
 * @param payloadBytes Bytes that the payload or the raw body of one timer or schedule may have.
 */
public record Quotas(
        Field<Long> pending,
        Field<Long> createsPerSecond,
        Field<Long> payloadBytes) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static Quotas of() {
        return new Quotas(
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Its timers that may be pending at once; not schedules.
     *
     * @param value its value
     * @return a copy with it
     */
    public Quotas pending(long value) {
        return pending(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param pending Its timers that may be pending at once; not schedules.
     * @return a copy with it
     */
    public Quotas pending(Field<Long> pending) {
        return new Quotas(
                pending,
                createsPerSecond,
                payloadBytes);
    }

    /**
     * Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth
     * at once.
     *
     * @param value its value
     * @return a copy with it
     */
    public Quotas createsPerSecond(long value) {
        return createsPerSecond(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param createsPerSecond Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth
     * at once.
     * @return a copy with it
     */
    public Quotas createsPerSecond(Field<Long> createsPerSecond) {
        return new Quotas(
                pending,
                createsPerSecond,
                payloadBytes);
    }

    /**
     * Bytes that the payload or the raw body of one timer or schedule may have.
     *
     * @param value its value
     * @return a copy with it
     */
    public Quotas payloadBytes(long value) {
        return payloadBytes(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param payloadBytes Bytes that the payload or the raw body of one timer or schedule may have.
     * @return a copy with it
     */
    public Quotas payloadBytes(Field<Long> payloadBytes) {
        return new Quotas(
                pending,
                createsPerSecond,
                payloadBytes);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        pending.putInto(sent, "pending", Json::of);
        createsPerSecond.putInto(sent, "createsPerSecond", Json::of);
        payloadBytes.putInto(sent, "payloadBytes", Json::of);
        return Json.object(sent);
    }
}