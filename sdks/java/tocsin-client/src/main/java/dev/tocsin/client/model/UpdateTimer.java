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
 * Changes to a pending timer; absent fields stay unchanged. Null removes <code>headers</code>,
 * <code>expireAfter</code>, <code>description</code>, <code>flowKey</code>, <code>credential</code>
 * and the hooks; a null <code>retryPolicy</code> returns to the namespace's policy.
 * <code>payload</code> and <code>body</code> replace one another. Send at most one of
 * <code>executeAt</code> and <code>delay</code>.
 *
 * @param namespace The namespace's name.
 * @param timerId The timer's id, unique in its namespace.
 * @param executeAt An RFC 3339 instant with a time zone.
 * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
 * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
 * secrets.
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
public record UpdateTimer(
        String namespace,
        String timerId,
        Field<Instant> executeAt,
        Field<Duration> delay,
        Field<String> callbackUrl,
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
     * @param timerId The timer's id, unique in its namespace.
     * @return the request
     */
    public static UpdateTimer of(String namespace, String timerId) {
        return new UpdateTimer(
                namespace,
                timerId,
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
    public UpdateTimer executeAt(Instant value) {
        return executeAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param executeAt An RFC 3339 instant with a time zone.
     * @return a copy with it
     */
    public UpdateTimer executeAt(Field<Instant> executeAt) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer delay(Duration value) {
        return delay(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param delay A duration: 500ms, 30s, 5m, 1h30m, 7d.
     * @return a copy with it
     */
    public UpdateTimer delay(Field<Duration> delay) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
     * The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateTimer callbackUrl(String value) {
        return callbackUrl(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackUrl The http or https URL to call, or <code>nats://subject</code> to publish to. Responses redact its
     * secrets.
     * @return a copy with it
     */
    public UpdateTimer callbackUrl(Field<String> callbackUrl) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer payload(Json value) {
        return payload(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param payload Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and
     * objects. With GET and HEAD, which send none, only null.
     * @return a copy with it
     */
    public UpdateTimer payload(Field<Json> payload) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer body(RawBody value) {
        return body(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param body The whole body of the callback, instead of the envelope with the payload.
     * @return a copy with it
     */
    public UpdateTimer body(Field<RawBody> body) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer method(CallbackMethod value) {
        return method(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param method The HTTP method of the callback.
     * @return a copy with it
     */
    public UpdateTimer method(Field<CallbackMethod> method) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer headers(Map<String, String> value) {
        return headers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param headers Additional headers of the callback. The value [redacted] keeps the timer's stored value.
     * @return a copy with it
     */
    public UpdateTimer headers(Field<Map<String, String>> headers) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy Without one, each attempt uses the namespace's current policy.
     * @return a copy with it
     */
    public UpdateTimer retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer callbackTimeoutSeconds(double value) {
        return callbackTimeoutSeconds(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackTimeoutSeconds Timeout of one attempt, in seconds. Default 10.
     * @return a copy with it
     */
    public UpdateTimer callbackTimeoutSeconds(Field<Double> callbackTimeoutSeconds) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public UpdateTimer tags(Field<List<String>> tags) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer expireAfter(Duration value) {
        return expireAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expireAfter No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as
     * expired then, any other as failed.
     * @return a copy with it
     */
    public UpdateTimer expireAfter(Field<Duration> expireAfter) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer description(String value) {
        return description(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param description What it is for, in one line; shown in lists and never sent to the callback.
     * @return a copy with it
     */
    public UpdateTimer description(Field<String> description) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer flowKey(String value) {
        return flowKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, if a rule of the
     * namespace matches it.
     * @return a copy with it
     */
    public UpdateTimer flowKey(Field<String> flowKey) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer credential(String value) {
        return credential(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param credential The namespace's credential that its requests have; it goes to no other origin than the credential's
     * own.
     * @return a copy with it
     */
    public UpdateTimer credential(Field<String> credential) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public UpdateTimer onFailure(Field<Hook> onFailure) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public UpdateTimer onSuccess(Field<Hook> onSuccess) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
    public UpdateTimer onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public UpdateTimer onRecovery(Field<Hook> onRecovery) {
        return new UpdateTimer(
                namespace,
                timerId,
                executeAt,
                delay,
                callbackUrl,
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
        sent.put("timerId", Json.of(timerId));
        executeAt.putInto(sent, "executeAt", Values::toJson);
        delay.putInto(sent, "delay", Values::toJson);
        callbackUrl.putInto(sent, "callbackUrl", Json::of);
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