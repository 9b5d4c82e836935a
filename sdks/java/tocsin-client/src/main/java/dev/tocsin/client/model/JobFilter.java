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
 * Which rows a job changes: pending timers, schedules that have not ended, failures that are listed,
 * or service calls that wait for their due time or for a retry, that match all of it. It is checked
 * again when each change becomes durable. Rows created after the job stay as they are.
 *
 * @param tags A row must have all of these tags. Not of failures, but of service calls.
 * @param idPrefix Prefix of the ids.
 * @param destination A part of the URL's host and path; case does not matter. Of failures: the destination of a group.
 * @param error A part of the last error; case does not matter. Of failures: the error of a group. Of timers and
 * failures only.
 * @param executeAfter Only timers and service calls due at or after this instant, or failures of such runs.
 * @param executeBefore Only timers and service calls due before this instant, or failures of such runs.
 * @param createdBefore Only rows created before this instant, or failed before it. Default: the job's creation.
 * @param kind Only failures of this kind. Of failures only.
 * @param createdAfter Only rows created at or after this instant: failed then, or submitted if it is a service call.
 * @param name A part of the name, with letters A to Z in either case. Of service calls only.
 * @param status Only calls that wait for this. Of service calls only.
 */
public record JobFilter(
        Field<List<String>> tags,
        Field<String> idPrefix,
        Field<String> destination,
        Field<String> error,
        Field<Instant> executeAfter,
        Field<Instant> executeBefore,
        Field<Instant> createdBefore,
        Field<FailedKind> kind,
        Field<Instant> createdAfter,
        Field<String> name,
        Field<WaitingStatus> status) {

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
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * A row must have all of these tags. Not of failures, but of service calls.
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
     * @param tags A row must have all of these tags. Not of failures, but of service calls.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * A part of the URL's host and path; case does not matter. Of failures: the destination of a group.
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
     * @param destination A part of the URL's host and path; case does not matter. Of failures: the destination of a group.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * A part of the last error; case does not matter. Of failures: the error of a group. Of timers and
     * failures only.
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
     * @param error A part of the last error; case does not matter. Of failures: the error of a group. Of timers and
     * failures only.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only timers and service calls due at or after this instant, or failures of such runs.
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
     * @param executeAfter Only timers and service calls due at or after this instant, or failures of such runs.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only timers and service calls due before this instant, or failures of such runs.
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
     * @param executeBefore Only timers and service calls due before this instant, or failures of such runs.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only rows created before this instant, or failed before it. Default: the job's creation.
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
     * @param createdBefore Only rows created before this instant, or failed before it. Default: the job's creation.
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
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only failures of this kind. Of failures only.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter kind(FailedKind value) {
        return kind(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param kind Only failures of this kind. Of failures only.
     * @return a copy with it
     */
    public JobFilter kind(Field<FailedKind> kind) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only rows created at or after this instant: failed then, or submitted if it is a service call.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter createdAfter(Instant value) {
        return createdAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param createdAfter Only rows created at or after this instant: failed then, or submitted if it is a service call.
     * @return a copy with it
     */
    public JobFilter createdAfter(Field<Instant> createdAfter) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * A part of the name, with letters A to Z in either case. Of service calls only.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter name(String value) {
        return name(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param name A part of the name, with letters A to Z in either case. Of service calls only.
     * @return a copy with it
     */
    public JobFilter name(Field<String> name) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
    }

    /**
     * Only calls that wait for this. Of service calls only.
     *
     * @param value its value
     * @return a copy with it
     */
    public JobFilter status(WaitingStatus value) {
        return status(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param status Only calls that wait for this. Of service calls only.
     * @return a copy with it
     */
    public JobFilter status(Field<WaitingStatus> status) {
        return new JobFilter(
                tags,
                idPrefix,
                destination,
                error,
                executeAfter,
                executeBefore,
                createdBefore,
                kind,
                createdAfter,
                name,
                status);
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
        kind.putInto(sent, "kind", FailedKind::toJson);
        createdAfter.putInto(sent, "createdAfter", Values::toJson);
        name.putInto(sent, "name", Json::of);
        status.putInto(sent, "status", WaitingStatus::toJson);
        return Json.object(sent);
    }
}