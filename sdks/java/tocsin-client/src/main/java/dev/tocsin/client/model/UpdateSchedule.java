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
 * Changes to a schedule; absent fields stay unchanged. A new <code>cron</code> replaces
 * <code>every</code> and the other way round. Null removes <code>anchor</code>, <code>startAt</code>,
 * <code>endAt</code>, <code>maxOccurrences</code>, <code>expireAfter</code>, <code>headers</code>,
 * <code>description</code>, <code>flowKey</code>, <code>credential</code>, <code>managedBy</code> and
 * the hooks, and restores the default of <code>catchUpWindow</code> and <code>retryPolicy</code>.
 *
 * @param namespace The namespace's name.
 * @param scheduleId The schedule's id, unique among its namespace's schedules.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
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
public record UpdateSchedule(
        String namespace,
        String scheduleId,
        Field<String> callbackUrl,
        Field<String> managedBy,
        Field<Long> expectedVersion,
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
     * @param scheduleId The schedule's id, unique among its namespace's schedules.
     * @return the request
     */
    public static UpdateSchedule of(String namespace, String scheduleId) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
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
     * The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateSchedule callbackUrl(String value) {
        return callbackUrl(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     * @return a copy with it
     */
    public UpdateSchedule callbackUrl(Field<String> callbackUrl) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateSchedule managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public UpdateSchedule managedBy(Field<String> managedBy) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public UpdateSchedule expectedVersion(Field<Long> expectedVersion) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule payload(Json value) {
        return payload(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param payload Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     * @return a copy with it
     */
    public UpdateSchedule payload(Field<Json> payload) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule body(RawBody value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body The whole body of the callback, instead of the envelope with the payload.
     * @return a copy with it
     */
    public UpdateSchedule body(Field<RawBody> body) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule method(CallbackMethod value) {
        return method(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param method The HTTP method of the callback.
     * @return a copy with it
     */
    public UpdateSchedule method(Field<CallbackMethod> method) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     * @return a copy with it
     */
    public UpdateSchedule headers(Field<Map<String, String>> headers) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy Without one, each attempt uses the namespace's current policy.
     * @return a copy with it
     */
    public UpdateSchedule retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule callbackTimeoutSeconds(double value) {
        return callbackTimeoutSeconds(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackTimeoutSeconds Timeout of one attempt, in seconds. Default 10.
     * @return a copy with it
     */
    public UpdateSchedule callbackTimeoutSeconds(Field<Double> callbackTimeoutSeconds) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public UpdateSchedule tags(Field<List<String>> tags) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule expireAfter(Duration value) {
        return expireAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     * @return a copy with it
     */
    public UpdateSchedule expireAfter(Field<Duration> expireAfter) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists and never sent to the callback.
     * @return a copy with it
     */
    public UpdateSchedule description(Field<String> description) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule flowKey(String value) {
        return flowKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     * @return a copy with it
     */
    public UpdateSchedule flowKey(Field<String> flowKey) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     * @return a copy with it
     */
    public UpdateSchedule credential(Field<String> credential) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public UpdateSchedule onFailure(Field<Hook> onFailure) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public UpdateSchedule onSuccess(Field<Hook> onSuccess) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public UpdateSchedule onRecovery(Field<Hook> onRecovery) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule cron(String value) {
        return cron(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param cron A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the
     * seconds first, or &#64;hourly, &#64;daily, &#64;weekly, &#64;monthly, &#64;yearly.
     * @return a copy with it
     */
    public UpdateSchedule cron(Field<String> cron) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule timeZone(String value) {
        return timeZone(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param timeZone The IANA time zone of cron. Default UTC.
     * @return a copy with it
     */
    public UpdateSchedule timeZone(Field<String> timeZone) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule every(Duration value) {
        return every(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param every An interval of 1s to 366d, by elapsed time, instead of cron.
     * @return a copy with it
     */
    public UpdateSchedule every(Field<Duration> every) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule anchor(Instant value) {
        return anchor(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param anchor An instant from which every counts, in both directions. Default: the schedule's creation.
     * @return a copy with it
     */
    public UpdateSchedule anchor(Field<Instant> anchor) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule startAt(Instant value) {
        return startAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param startAt No instant is earlier than this.
     * @return a copy with it
     */
    public UpdateSchedule startAt(Field<Instant> startAt) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule endAt(Instant value) {
        return endAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param endAt All instants are earlier than this.
     * @return a copy with it
     */
    public UpdateSchedule endAt(Field<Instant> endAt) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule maxOccurrences(long value) {
        return maxOccurrences(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxOccurrences How many instants it has; afterwards it ends.
     * @return a copy with it
     */
    public UpdateSchedule maxOccurrences(Field<Long> maxOccurrences) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule jitter(Duration value) {
        return jitter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param jitter Longest delay of an instant; none is delayed past the next one. The delay depends only on the
     * schedule and the instant. Default 0s.
     * @return a copy with it
     */
    public UpdateSchedule jitter(Field<Duration> jitter) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule catchUp(CatchUp value) {
        return catchUp(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param catchUp What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence
     * has not finished. latest: the last of them fires (the default); all: each fires; none: none fires.
     * @return a copy with it
     */
    public UpdateSchedule catchUp(Field<CatchUp> catchUp) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule catchUpWindow(Duration value) {
        return catchUpWindow(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param catchUpWindow Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
     * @return a copy with it
     */
    public UpdateSchedule catchUpWindow(Field<Duration> catchUpWindow) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule pauseAfterFailures(long value) {
        return pauseAfterFailures(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param pauseAfterFailures Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
     * @return a copy with it
     */
    public UpdateSchedule pauseAfterFailures(Field<Long> pauseAfterFailures) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule only(List<String> value) {
        return only(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param only Calendars: only instants on a date of one of them fire. Empty: no restriction.
     * @return a copy with it
     */
    public UpdateSchedule only(Field<List<String>> only) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule skip(List<String> value) {
        return skip(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param skip Calendars: no instant on a date of any of them fires.
     * @return a copy with it
     */
    public UpdateSchedule skip(Field<List<String>> skip) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onSkipped(OnSkipped value) {
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
    public UpdateSchedule onSkipped(Field<OnSkipped> onSkipped) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onMissed(Hook value) {
        return onMissed(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
     * @return a copy with it
     */
    public UpdateSchedule onMissed(Field<Hook> onMissed) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
    public UpdateSchedule onPaused(Hook value) {
        return onPaused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
     * @return a copy with it
     */
    public UpdateSchedule onPaused(Field<Hook> onPaused) {
        return new UpdateSchedule(
                namespace,
                scheduleId,
                callbackUrl,
                managedBy,
                expectedVersion,
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
        sent.put("scheduleId", Json.of(scheduleId));
        callbackUrl.putInto(sent, "callbackUrl", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
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