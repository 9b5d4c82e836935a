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
 * A timer to create; send exactly one of <code>executeAt</code> and <code>delay</code>, and at most
 * one of <code>payload</code> and <code>body</code>. <code>maxDelay</code> and <code>collect</code>
 * belong to <code>onConflict: debounce</code>, which takes <code>delay</code> only.
 *
 * @param namespace The namespace's name.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
 * @param id The timer's id, unique in its namespace.
 * @param executeAt An RFC 3339 instant with a time zone.
 * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
 * @param onConflict What to do if a timer with this id exists, pending or finished and retained: replace it (the
 * default), keep it and return it, or reject the request; or debounce: fire once for all creates that
 * follow one another, delay after the latest.
 * @param maxDelay With onConflict debounce, required: the timer fires at the latest this long after the first create
 * for which it stands. Of different values, each is kept.
 * @param collect With onConflict debounce: the callback's payload is an array of the payloads of all creates for
 * which it stands, at most this many, and 100 KiB. Without it, the payload is that of the latest
 * create.
 * @param idempotencyKey Makes the create safe to repeat: a timer with this id that was created with the same key is returned
 * unchanged, even after it has finished. Equivalent to the header Idempotency-Key.
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
 */
public record CreateTimer(
        String namespace,
        String callbackUrl,
        String id,
        Field<Instant> executeAt,
        Field<Duration> delay,
        Field<OnConflict> onConflict,
        Field<Duration> maxDelay,
        Field<Long> collect,
        Field<String> idempotencyKey,
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
        Field<Hook> onRecovery) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param id The timer's id, unique in its namespace.
     * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     * @return the request
     */
    public static CreateTimer of(String namespace, String id, String callbackUrl) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
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
     * An RFC 3339 instant with a time zone.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer executeAt(Instant value) {
        return executeAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeAt An RFC 3339 instant with a time zone.
     * @return a copy with it
     */
    public CreateTimer executeAt(Field<Instant> executeAt) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * A duration: 500ms, 30s, 5m, 1h30m, 7d.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer delay(Duration value) {
        return delay(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
     * @return a copy with it
     */
    public CreateTimer delay(Field<Duration> delay) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * What to do if a timer with this id exists, pending or finished and retained: replace it (the
     * default), keep it and return it, or reject the request; or debounce: fire once for all creates that
     * follow one another, delay after the latest.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer onConflict(OnConflict value) {
        return onConflict(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onConflict What to do if a timer with this id exists, pending or finished and retained: replace it (the
     * default), keep it and return it, or reject the request; or debounce: fire once for all creates that
     * follow one another, delay after the latest.
     * @return a copy with it
     */
    public CreateTimer onConflict(Field<OnConflict> onConflict) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * With onConflict debounce, required: the timer fires at the latest this long after the first create
     * for which it stands. Of different values, each is kept.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer maxDelay(Duration value) {
        return maxDelay(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxDelay With onConflict debounce, required: the timer fires at the latest this long after the first create
     * for which it stands. Of different values, each is kept.
     * @return a copy with it
     */
    public CreateTimer maxDelay(Field<Duration> maxDelay) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * With onConflict debounce: the callback's payload is an array of the payloads of all creates for
     * which it stands, at most this many, and 100 KiB. Without it, the payload is that of the latest
     * create.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer collect(long value) {
        return collect(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param collect With onConflict debounce: the callback's payload is an array of the payloads of all creates for
     * which it stands, at most this many, and 100 KiB. Without it, the payload is that of the latest
     * create.
     * @return a copy with it
     */
    public CreateTimer collect(Field<Long> collect) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Makes the create safe to repeat: a timer with this id that was created with the same key is returned
     * unchanged, even after it has finished. Equivalent to the header Idempotency-Key.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer idempotencyKey(String value) {
        return idempotencyKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idempotencyKey Makes the create safe to repeat: a timer with this id that was created with the same key is returned
     * unchanged, even after it has finished. Equivalent to the header Idempotency-Key.
     * @return a copy with it
     */
    public CreateTimer idempotencyKey(Field<String> idempotencyKey) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer payload(Json value) {
        return payload(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param payload Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     * @return a copy with it
     */
    public CreateTimer payload(Field<Json> payload) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * The whole body of the callback, instead of the envelope with the payload.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer body(RawBody value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body The whole body of the callback, instead of the envelope with the payload.
     * @return a copy with it
     */
    public CreateTimer body(Field<RawBody> body) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * The HTTP method of the callback.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer method(CallbackMethod value) {
        return method(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param method The HTTP method of the callback.
     * @return a copy with it
     */
    public CreateTimer method(Field<CallbackMethod> method) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     * @return a copy with it
     */
    public CreateTimer headers(Field<Map<String, String>> headers) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Without one, each attempt uses the namespace's current policy.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy Without one, each attempt uses the namespace's current policy.
     * @return a copy with it
     */
    public CreateTimer retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Timeout of one attempt, in seconds. Default 10.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer callbackTimeoutSeconds(double value) {
        return callbackTimeoutSeconds(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackTimeoutSeconds Timeout of one attempt, in seconds. Default 10.
     * @return a copy with it
     */
    public CreateTimer callbackTimeoutSeconds(Field<Double> callbackTimeoutSeconds) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Labels to filter lists by.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public CreateTimer tags(Field<List<String>> tags) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer expireAfter(Duration value) {
        return expireAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     * @return a copy with it
     */
    public CreateTimer expireAfter(Field<Duration> expireAfter) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * What it is for, in one line; shown in lists and never sent to the callback.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists and never sent to the callback.
     * @return a copy with it
     */
    public CreateTimer description(Field<String> description) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer flowKey(String value) {
        return flowKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     * @return a copy with it
     */
    public CreateTimer flowKey(Field<String> flowKey) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     * @return a copy with it
     */
    public CreateTimer credential(Field<String> credential) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Who is notified when it has failed, or expired.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public CreateTimer onFailure(Field<Hook> onFailure) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Who is notified when it has succeeded.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public CreateTimer onSuccess(Field<Hook> onSuccess) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateTimer onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public CreateTimer onRecovery(Field<Hook> onRecovery) {
        return new CreateTimer(
                namespace,
                callbackUrl,
                id,
                executeAt,
                delay,
                onConflict,
                maxDelay,
                collect,
                idempotencyKey,
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
                onRecovery);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("callbackUrl", Json.of(callbackUrl));
        sent.put("id", Json.of(id));
        executeAt.putInto(sent, "executeAt", Values::toJson);
        delay.putInto(sent, "delay", Values::toJson);
        onConflict.putInto(sent, "onConflict", OnConflict::toJson);
        maxDelay.putInto(sent, "maxDelay", Values::toJson);
        collect.putInto(sent, "collect", Json::of);
        idempotencyKey.putInto(sent, "idempotencyKey", Json::of);
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
        return Json.object(sent);
    }
}