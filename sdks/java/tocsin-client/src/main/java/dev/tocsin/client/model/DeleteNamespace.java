// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A namespace to delete.
 *
 * @param name The namespace's name.
 * @param cancelPending Delete it although timers or schedules are pending in it. Default false.
 * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 * @param idempotencyKey Makes the request safe to repeat: the same key answers the same job.
 */
public record DeleteNamespace(
        String name,
        Field<Boolean> cancelPending,
        Field<Long> ratePerSecond,
        Field<Long> expectedVersion,
        Field<String> idempotencyKey) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param name The namespace's name.
     * @return the request
     */
    public static DeleteNamespace of(String name) {
        return new DeleteNamespace(
                name,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Delete it although timers or schedules are pending in it. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteNamespace cancelPending(boolean value) {
        return cancelPending(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cancelPending Delete it although timers or schedules are pending in it. Default false.
     * @return a copy with it
     */
    public DeleteNamespace cancelPending(Field<Boolean> cancelPending) {
        return new DeleteNamespace(
                name,
                cancelPending,
                ratePerSecond,
                expectedVersion,
                idempotencyKey);
    }

    /**
     * Rows a second that the job changes at most, in the whole cluster. Default 500.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteNamespace ratePerSecond(long value) {
        return ratePerSecond(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
     * @return a copy with it
     */
    public DeleteNamespace ratePerSecond(Field<Long> ratePerSecond) {
        return new DeleteNamespace(
                name,
                cancelPending,
                ratePerSecond,
                expectedVersion,
                idempotencyKey);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteNamespace expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public DeleteNamespace expectedVersion(Field<Long> expectedVersion) {
        return new DeleteNamespace(
                name,
                cancelPending,
                ratePerSecond,
                expectedVersion,
                idempotencyKey);
    }

    /**
     * Makes the request safe to repeat: the same key answers the same job.
     *
     * @param value its value
     * @return a copy with it
     */
    public DeleteNamespace idempotencyKey(String value) {
        return idempotencyKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idempotencyKey Makes the request safe to repeat: the same key answers the same job.
     * @return a copy with it
     */
    public DeleteNamespace idempotencyKey(Field<String> idempotencyKey) {
        return new DeleteNamespace(
                name,
                cancelPending,
                ratePerSecond,
                expectedVersion,
                idempotencyKey);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("name", Json.of(name));
        cancelPending.putInto(sent, "cancelPending", Json::of);
        ratePerSecond.putInto(sent, "ratePerSecond", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        idempotencyKey.putInto(sent, "idempotencyKey", Json::of);
        return Json.object(sent);
    }
}