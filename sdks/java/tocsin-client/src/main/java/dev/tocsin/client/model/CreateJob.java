// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A job to create: of a namespace or, to replay or delete service calls, of a tenant.
 *
 * @param action What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of
 * schedules; replay of failures; delete of service calls.
 * @param of What is changed: timers, schedules, failures, or calls that wait.
 * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
 * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
 * key has access to.
 * @param filter filter
 * @param all Must be true if the filter is empty: every row is changed.
 * @param shiftBy By how much shift moves the instants: a duration, with - to an earlier one.
 * @param url The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
 * @param dryRun Only counts the rows that match. Default false.
 * @param matchMax The job fails instead of changing more rows, for example than a dry run has counted.
 * @param idempotencyKey Makes the request safe to repeat: the same key answers the same job.
 */
public record CreateJob(
        JobAction action,
        JobKind of,
        Field<String> namespace,
        Field<String> tenant,
        Field<JobFilter> filter,
        Field<Boolean> all,
        Field<String> shiftBy,
        Field<String> url,
        Field<Long> ratePerSecond,
        Field<Boolean> dryRun,
        Field<Long> matchMax,
        Field<String> idempotencyKey) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param action What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of
     * schedules; replay of failures; delete of service calls.
     * @param of What is changed: timers, schedules, failures, or calls that wait.
     * @return the request
     */
    public static CreateJob of(JobAction action, JobKind of) {
        return new CreateJob(
                action,
                of,
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
     * The namespace's name; <code>*</code>: all that the API key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob namespace(String value) {
        return namespace(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param namespace The namespace's name; <code>*</code>: all that the API key has access to.
     * @return a copy with it
     */
    public CreateJob namespace(Field<String> namespace) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob tenant(String value) {
        return tenant(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tenant The tenant whose service calls are meant, instead of a namespace; <code>*</code>: all that the API
     * key has access to.
     * @return a copy with it
     */
    public CreateJob tenant(Field<String> tenant) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * filter
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob filter(JobFilter value) {
        return filter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param filter filter
     * @return a copy with it
     */
    public CreateJob filter(Field<JobFilter> filter) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * Must be true if the filter is empty: every row is changed.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob all(boolean value) {
        return all(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param all Must be true if the filter is empty: every row is changed.
     * @return a copy with it
     */
    public CreateJob all(Field<Boolean> all) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * By how much shift moves the instants: a duration, with - to an earlier one.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob shiftBy(String value) {
        return shiftBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param shiftBy By how much shift moves the instants: a duration, with - to an earlier one.
     * @return a copy with it
     */
    public CreateJob shiftBy(Field<String> shiftBy) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob url(String value) {
        return url(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param url The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     * @return a copy with it
     */
    public CreateJob url(Field<String> url) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * Rows a second that the job changes at most, in the whole cluster. Default 500.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob ratePerSecond(long value) {
        return ratePerSecond(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
     * @return a copy with it
     */
    public CreateJob ratePerSecond(Field<Long> ratePerSecond) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * Only counts the rows that match. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob dryRun(boolean value) {
        return dryRun(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dryRun Only counts the rows that match. Default false.
     * @return a copy with it
     */
    public CreateJob dryRun(Field<Boolean> dryRun) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * The job fails instead of changing more rows, for example than a dry run has counted.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob matchMax(long value) {
        return matchMax(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param matchMax The job fails instead of changing more rows, for example than a dry run has counted.
     * @return a copy with it
     */
    public CreateJob matchMax(Field<Long> matchMax) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * Makes the request safe to repeat: the same key answers the same job.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateJob idempotencyKey(String value) {
        return idempotencyKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idempotencyKey Makes the request safe to repeat: the same key answers the same job.
     * @return a copy with it
     */
    public CreateJob idempotencyKey(Field<String> idempotencyKey) {
        return new CreateJob(
                action,
                of,
                namespace,
                tenant,
                filter,
                all,
                shiftBy,
                url,
                ratePerSecond,
                dryRun,
                matchMax,
                idempotencyKey);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("action", action.toJson());
        sent.put("of", of.toJson());
        namespace.putInto(sent, "namespace", Json::of);
        tenant.putInto(sent, "tenant", Json::of);
        filter.putInto(sent, "filter", JobFilter::toJson);
        all.putInto(sent, "all", Json::of);
        shiftBy.putInto(sent, "shiftBy", Json::of);
        url.putInto(sent, "url", Json::of);
        ratePerSecond.putInto(sent, "ratePerSecond", Json::of);
        dryRun.putInto(sent, "dryRun", Json::of);
        matchMax.putInto(sent, "matchMax", Json::of);
        idempotencyKey.putInto(sent, "idempotencyKey", Json::of);
        return Json.object(sent);
    }
}