// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Which timers or schedules a job changes: pending timers, and schedules that have not ended, that
 * match all of it. It is checked again when each change becomes durable. Rows created after the job
 * stay as they are.
 *
 * @param tags A row must have all of these tags.
 * @param idPrefix Prefix of the ids.
 * @param destination A part of the callback's host and path; case does not matter.
 * @param error A part of the last error; case does not matter. Of timers only.
 * @param executeAfter Only timers due at or after this instant.
 * @param executeBefore Only timers due before this instant.
 * @param createdBefore Only rows created before this instant. Default: the job's creation.
 */
public record JobFilter(
        Field<List<String>> tags,
        Field<String> idPrefix,
        Field<String> destination,
        Field<String> error,
        Field<Instant> executeAfter,
        Field<Instant> executeBefore,
        Field<Instant> createdBefore) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static JobFilter of() {
        return new JobFilter(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * A row must have all of these tags.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags A row must have all of these tags.
     * @return a copy with it
     */
    public JobFilter tags(Field<List<String>> tags) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * Prefix of the ids.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter idPrefix(String value) {
        return idPrefix(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idPrefix Prefix of the ids.
     * @return a copy with it
     */
    public JobFilter idPrefix(Field<String> idPrefix) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * A part of the callback's host and path; case does not matter.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter destination(String value) {
        return destination(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param destination A part of the callback's host and path; case does not matter.
     * @return a copy with it
     */
    public JobFilter destination(Field<String> destination) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * A part of the last error; case does not matter. Of timers only.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter error(String value) {
        return error(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param error A part of the last error; case does not matter. Of timers only.
     * @return a copy with it
     */
    public JobFilter error(Field<String> error) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * Only timers due at or after this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter executeAfter(Instant value) {
        return executeAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeAfter Only timers due at or after this instant.
     * @return a copy with it
     */
    public JobFilter executeAfter(Field<Instant> executeAfter) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * Only timers due before this instant.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter executeBefore(Instant value) {
        return executeBefore(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeBefore Only timers due before this instant.
     * @return a copy with it
     */
    public JobFilter executeBefore(Field<Instant> executeBefore) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * Only rows created before this instant. Default: the job's creation.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter createdBefore(Instant value) {
        return createdBefore(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param createdBefore Only rows created before this instant. Default: the job's creation.
     * @return a copy with it
     */
    public JobFilter createdBefore(Field<Instant> createdBefore) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        tags.putInto(sent, "tags", each -> Json.array(each, Json::of));
        idPrefix.putInto(sent, "idPrefix", Json::of);
        destination.putInto(sent, "destination", Json::of);
        error.putInto(sent, "error", Json::of);
        executeAfter.putInto(sent, "executeAfter", Values::toJson);
        executeBefore.putInto(sent, "executeBefore", Values::toJson);
        createdBefore.putInto(sent, "createdBefore", Values::toJson);
        return Json.object(sent);
    }
}