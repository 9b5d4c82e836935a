// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A schedule to create; send exactly one of <code>cron</code> and <code>every</code>, and at most one
 * of <code>payload</code> and <code>body</code>. Without <code>managedBy</code> an existing schedule
 * keeps it.
 *
 * @param namespace The namespace's name.
 * @param id The schedule's id, unique among its namespace's schedules.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param paused Whether a new schedule begins paused; one that exists stays as it is. Default false.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 * @param dryRun Writes nothing: the response shows what would be written. Default false.
 * @param payload Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
 * objects. With GET and HEAD, which send none, only null.
 * @param body The whole body of the callback, instead of the envelope with the payload.
 * @param method The HTTP method of the callback.
 * @param headers Additional headers of the callback. The value [redacted] keeps the timer's stored value.
 * @param retryPolicy Without one, each attempt uses the namespace's current policy.
 * @param callbackTimeoutSeconds Timeout of one attempt, in seconds. Default 10.
 * @param tags Labels to filter lists by.
 * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
 * expired then, any other as failed.
 * @param description What it is for, in one line; shown in lists and never sent to the callback.
 * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
 * namespace matches it.
 * @param credential The namespace's credential that its requests have; it goes to no other origin than the credential's
 * own.
 * @param onFailure Who is notified when it has failed, or expired.
 * @param onSuccess Who is notified when it has succeeded.
 * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
 * its replay.
 * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
 * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
 * @param timeZone The IANA time zone of cron. Default UTC.
 * @param every An interval of 1s to 366d, by elapsed time, instead of cron.
 * @param anchor An instant from which every counts, in both directions. Default: the schedule's creation.
 * @param startAt No instant is earlier than this.
 * @param endAt All instants are earlier than this.
 * @param maxOccurrences How many instants it has; afterwards it ends.
 * @param jitter Longest delay of an instant; none is delayed past the next one. The delay depends only on the
 * schedule and the instant. Default 0s.
 * @param catchUp What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence
 * has not finished. latest: the last of them fires (the default); all: each fires; none: none fires.
 * @param catchUpWindow Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
 * @param pauseAfterFailures Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
 * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
 * @param skip Calendars: no instant on a date of any of them fires.
 * @param onSkipped What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
 * the same time of day on the next date that is allowed, unless the rule has instants on that date or
 * before it. next requires cron with fixed times.
 * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
 * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
 */
public record CreateSchedule(
        String namespace,
        String id,
        String callbackUrl,
        Field<String> managedBy,
        Field<Boolean> paused,
        Field<Long> expectedVersion,
        Field<Boolean> dryRun,
        Field<Json> payload,
        Field<RawBody> body,
        Field<CallbackMethod> method,
        Field<Map<String, String>> headers,
        Field<RetryPolicy> retryPolicy,
        Field<Double> callbackTimeoutSeconds,
        Field<List<String>> tags,
        Field<Duration> expireAfter,
        Field<String> description,
        Field<String> flowKey,
        Field<String> credential,
        Field<Hook> onFailure,
        Field<Hook> onSuccess,
        Field<Hook> onRecovery,
        Field<String> cron,
        Field<String> timeZone,
        Field<Duration> every,
        Field<Instant> anchor,
        Field<Instant> startAt,
        Field<Instant> endAt,
        Field<Long> maxOccurrences,
        Field<Duration> jitter,
        Field<CatchUp> catchUp,
        Field<Duration> catchUpWindow,
        Field<Long> pauseAfterFailures,
        Field<List<String>> only,
        Field<List<String>> skip,
        Field<OnSkipped> onSkipped,
        Field<Hook> onMissed,
        Field<Hook> onPaused) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The schedule's id, unique among its namespace's schedules.
     * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     * @return the request
     */
    public static CreateSchedule of(String namespace, String id, String callbackUrl) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
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
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public CreateSchedule managedBy(Field<String> managedBy) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Whether a new schedule begins paused; one that exists stays as it is. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule paused(boolean value) {
        return paused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param paused Whether a new schedule begins paused; one that exists stays as it is. Default false.
     * @return a copy with it
     */
    public CreateSchedule paused(Field<Boolean> paused) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public CreateSchedule expectedVersion(Field<Long> expectedVersion) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Writes nothing: the response shows what would be written. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule dryRun(boolean value) {
        return dryRun(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dryRun Writes nothing: the response shows what would be written. Default false.
     * @return a copy with it
     */
    public CreateSchedule dryRun(Field<Boolean> dryRun) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule payload(Json value) {
        return payload(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param payload Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     * @return a copy with it
     */
    public CreateSchedule payload(Field<Json> payload) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The whole body of the callback, instead of the envelope with the payload.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule body(RawBody value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body The whole body of the callback, instead of the envelope with the payload.
     * @return a copy with it
     */
    public CreateSchedule body(Field<RawBody> body) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The HTTP method of the callback.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule method(CallbackMethod value) {
        return method(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param method The HTTP method of the callback.
     * @return a copy with it
     */
    public CreateSchedule method(Field<CallbackMethod> method) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     * @return a copy with it
     */
    public CreateSchedule headers(Field<Map<String, String>> headers) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Without one, each attempt uses the namespace's current policy.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy Without one, each attempt uses the namespace's current policy.
     * @return a copy with it
     */
    public CreateSchedule retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Timeout of one attempt, in seconds. Default 10.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule callbackTimeoutSeconds(double value) {
        return callbackTimeoutSeconds(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackTimeoutSeconds Timeout of one attempt, in seconds. Default 10.
     * @return a copy with it
     */
    public CreateSchedule callbackTimeoutSeconds(Field<Double> callbackTimeoutSeconds) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Labels to filter lists by.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public CreateSchedule tags(Field<List<String>> tags) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule expireAfter(Duration value) {
        return expireAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     * @return a copy with it
     */
    public CreateSchedule expireAfter(Field<Duration> expireAfter) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * What it is for, in one line; shown in lists and never sent to the callback.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists and never sent to the callback.
     * @return a copy with it
     */
    public CreateSchedule description(Field<String> description) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule flowKey(String value) {
        return flowKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     * @return a copy with it
     */
    public CreateSchedule flowKey(Field<String> flowKey) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     * @return a copy with it
     */
    public CreateSchedule credential(Field<String> credential) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Who is notified when it has failed, or expired.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public CreateSchedule onFailure(Field<Hook> onFailure) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Who is notified when it has succeeded.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public CreateSchedule onSuccess(Field<Hook> onSuccess) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public CreateSchedule onRecovery(Field<Hook> onRecovery) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule cron(String value) {
        return cron(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     * @return a copy with it
     */
    public CreateSchedule cron(Field<String> cron) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The IANA time zone of cron. Default UTC.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule timeZone(String value) {
        return timeZone(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param timeZone The IANA time zone of cron. Default UTC.
     * @return a copy with it
     */
    public CreateSchedule timeZone(Field<String> timeZone) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * An interval of 1s to 366d, by elapsed time, instead of cron.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule every(Duration value) {
        return every(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param every An interval of 1s to 366d, by elapsed time, instead of cron.
     * @return a copy with it
     */
    public CreateSchedule every(Field<Duration> every) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * An instant from which every counts, in both directions. Default: the schedule's creation.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule anchor(Instant value) {
        return anchor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param anchor An instant from which every counts, in both directions. Default: the schedule's creation.
     * @return a copy with it
     */
    public CreateSchedule anchor(Field<Instant> anchor) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * No instant is earlier than this.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule startAt(Instant value) {
        return startAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param startAt No instant is earlier than this.
     * @return a copy with it
     */
    public CreateSchedule startAt(Field<Instant> startAt) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * All instants are earlier than this.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule endAt(Instant value) {
        return endAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param endAt All instants are earlier than this.
     * @return a copy with it
     */
    public CreateSchedule endAt(Field<Instant> endAt) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * How many instants it has; afterwards it ends.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule maxOccurrences(long value) {
        return maxOccurrences(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxOccurrences How many instants it has; afterwards it ends.
     * @return a copy with it
     */
    public CreateSchedule maxOccurrences(Field<Long> maxOccurrences) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Longest delay of an instant; none is delayed past the next one. The delay depends only on the
     * schedule and the instant. Default 0s.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule jitter(Duration value) {
        return jitter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param jitter Longest delay of an instant; none is delayed past the next one. The delay depends only on the
     * schedule and the instant. Default 0s.
     * @return a copy with it
     */
    public CreateSchedule jitter(Field<Duration> jitter) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence
     * has not finished. latest: the last of them fires (the default); all: each fires; none: none fires.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule catchUp(CatchUp value) {
        return catchUp(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param catchUp What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence
     * has not finished. latest: the last of them fires (the default); all: each fires; none: none fires.
     * @return a copy with it
     */
    public CreateSchedule catchUp(Field<CatchUp> catchUp) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule catchUpWindow(Duration value) {
        return catchUpWindow(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param catchUpWindow Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
     * @return a copy with it
     */
    public CreateSchedule catchUpWindow(Field<Duration> catchUpWindow) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule pauseAfterFailures(long value) {
        return pauseAfterFailures(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param pauseAfterFailures Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
     * @return a copy with it
     */
    public CreateSchedule pauseAfterFailures(Field<Long> pauseAfterFailures) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Calendars: only instants on a date of one of them fire. Empty: no restriction.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule only(List<String> value) {
        return only(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
     * @return a copy with it
     */
    public CreateSchedule only(Field<List<String>> only) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Calendars: no instant on a date of any of them fires.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule skip(List<String> value) {
        return skip(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param skip Calendars: no instant on a date of any of them fires.
     * @return a copy with it
     */
    public CreateSchedule skip(Field<List<String>> skip) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
     * the same time of day on the next date that is allowed, unless the rule has instants on that date or
     * before it. next requires cron with fixed times.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onSkipped(OnSkipped value) {
        return onSkipped(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSkipped What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to
     * the same time of day on the next date that is allowed, unless the rule has instants on that date or
     * before it. next requires cron with fixed times.
     * @return a copy with it
     */
    public CreateSchedule onSkipped(Field<OnSkipped> onSkipped) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Who is notified when instants did not fire, though the schedule was not paused.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onMissed(Hook value) {
        return onMissed(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
     * @return a copy with it
     */
    public CreateSchedule onMissed(Field<Hook> onMissed) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * Who is notified when the schedule has paused itself after failures in a row.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateSchedule onPaused(Hook value) {
        return onPaused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
     * @return a copy with it
     */
    public CreateSchedule onPaused(Field<Hook> onPaused) {
        return new CreateSchedule(
                namespace,
                id,
                callbackUrl,
                managedBy,
                paused,
                expectedVersion,
                dryRun,
                payload,
                body,
                method,
                headers,
                retryPolicy,
                callbackTimeoutSeconds,
                tags,
                expireAfter,
                description,
                flowKey,
                credential,
                onFailure,
                onSuccess,
                onRecovery,
                cron,
                timeZone,
                every,
                anchor,
                startAt,
                endAt,
                maxOccurrences,
                jitter,
                catchUp,
                catchUpWindow,
                pauseAfterFailures,
                only,
                skip,
                onSkipped,
                onMissed,
                onPaused);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("id", Json.of(id));
        sent.put("callbackUrl", Json.of(callbackUrl));
        managedBy.putInto(sent, "managedBy", Json::of);
        paused.putInto(sent, "paused", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        dryRun.putInto(sent, "dryRun", Json::of);
        payload.putInto(sent, "payload", value -> value);
        body.putInto(sent, "body", RawBody::toJson);
        method.putInto(sent, "method", CallbackMethod::toJson);
        headers.putInto(sent, "headers", each -> Json.object(each, Json::of));
        retryPolicy.putInto(sent, "retryPolicy", RetryPolicy::toJson);
        callbackTimeoutSeconds.putInto(sent, "callbackTimeoutSeconds", Json::of);
        tags.putInto(sent, "tags", each -> Json.array(each, Json::of));
        expireAfter.putInto(sent, "expireAfter", Values::toJson);
        description.putInto(sent, "description", Json::of);
        flowKey.putInto(sent, "flowKey", Json::of);
        credential.putInto(sent, "credential", Json::of);
        onFailure.putInto(sent, "onFailure", Hook::toJson);
        onSuccess.putInto(sent, "onSuccess", Hook::toJson);
        onRecovery.putInto(sent, "onRecovery", Hook::toJson);
        cron.putInto(sent, "cron", Json::of);
        timeZone.putInto(sent, "timeZone", Json::of);
        every.putInto(sent, "every", Values::toJson);
        anchor.putInto(sent, "anchor", Values::toJson);
        startAt.putInto(sent, "startAt", Values::toJson);
        endAt.putInto(sent, "endAt", Values::toJson);
        maxOccurrences.putInto(sent, "maxOccurrences", Json::of);
        jitter.putInto(sent, "jitter", Values::toJson);
        catchUp.putInto(sent, "catchUp", CatchUp::toJson);
        catchUpWindow.putInto(sent, "catchUpWindow", Values::toJson);
        pauseAfterFailures.putInto(sent, "pauseAfterFailures", Json::of);
        only.putInto(sent, "only", each -> Json.array(each, Json::of));
        skip.putInto(sent, "skip", each -> Json.array(each, Json::of));
        onSkipped.putInto(sent, "onSkipped", OnSkipped::toJson);
        onMissed.putInto(sent, "onMissed", Hook::toJson);
        onPaused.putInto(sent, "onPaused", Hook::toJson);
        return Json.object(sent);
    }
}