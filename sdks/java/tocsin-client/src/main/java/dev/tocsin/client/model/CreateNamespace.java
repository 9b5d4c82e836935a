// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A namespace to create.
 *
 * @param name The namespace's name.
 * @param numShards The number of shards that its timers are spread over. Cannot be changed later.
 * @param history Which finished timers stay visible.
 * @param retention How long finished timers stay visible; at most 3653d.
 * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
 * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
 * @param retryPolicy The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
 * @param limits The limits of all attempts of the namespace together.
 * @param quotas Limits on what its clients create.
 * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
 * receiver answers timer by timer.
 * @param eventSink Where what becomes of its timers, schedules and monitors is published: below this subject of NATS,
 * such as <code>shop.events.timer.failed</code>, with JetStream’s acknowledgement. The setting
 * <code>nats_targets</code> has to list the subject for the namespace. Events without a sink are not
 * kept.
 * @param onFailure Who is notified when it has failed, or expired.
 * @param onSuccess Who is notified when it has succeeded.
 * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
 * its replay.
 * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
 * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
 * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
 * @param secret Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 */
public record CreateNamespace(
        String name,
        Field<Long> numShards,
        Field<HistoryMode> history,
        Field<Duration> retention,
        Field<CallbackAnswers> answers,
        Field<RetryPolicy> retryPolicy,
        Field<FlowLimits> limits,
        Field<Quotas> quotas,
        Field<CallbackBatch> callbackBatch,
        Field<String> eventSink,
        Field<Hook> onFailure,
        Field<Hook> onSuccess,
        Field<Hook> onRecovery,
        Field<Hook> onMissed,
        Field<Hook> onPaused,
        Field<Hook> onLate,
        Field<String> secret,
        Field<String> managedBy) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param name The namespace's name.
     * @return the request
     */
    public static CreateNamespace of(String name) {
        return new CreateNamespace(
                name,
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
     * The number of shards that its timers are spread over. Cannot be changed later.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace numShards(long value) {
        return numShards(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param numShards The number of shards that its timers are spread over. Cannot be changed later.
     * @return a copy with it
     */
    public CreateNamespace numShards(Field<Long> numShards) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Which finished timers stay visible.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace history(HistoryMode value) {
        return history(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param history Which finished timers stay visible.
     * @return a copy with it
     */
    public CreateNamespace history(Field<HistoryMode> history) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * How long finished timers stay visible; at most 3653d.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace retention(Duration value) {
        return retention(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retention How long finished timers stay visible; at most 3653d.
     * @return a copy with it
     */
    public CreateNamespace retention(Field<Duration> retention) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
     * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace answers(CallbackAnswers value) {
        return answers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
     * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
     * @return a copy with it
     */
    public CreateNamespace answers(Field<CallbackAnswers> answers) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
     * @return a copy with it
     */
    public CreateNamespace retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * The limits of all attempts of the namespace together.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace limits(FlowLimits value) {
        return limits(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limits The limits of all attempts of the namespace together.
     * @return a copy with it
     */
    public CreateNamespace limits(Field<FlowLimits> limits) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Limits on what its clients create.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace quotas(Quotas value) {
        return quotas(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param quotas Limits on what its clients create.
     * @return a copy with it
     */
    public CreateNamespace quotas(Field<Quotas> quotas) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace callbackBatch(CallbackBatch value) {
        return callbackBatch(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     * @return a copy with it
     */
    public CreateNamespace callbackBatch(Field<CallbackBatch> callbackBatch) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Where what becomes of its timers, schedules and monitors is published: below this subject of NATS,
     * such as <code>shop.events.timer.failed</code>, with JetStream’s acknowledgement. The setting
     * <code>nats_targets</code> has to list the subject for the namespace. Events without a sink are not
     * kept.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace eventSink(String value) {
        return eventSink(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param eventSink Where what becomes of its timers, schedules and monitors is published: below this subject of NATS,
     * such as <code>shop.events.timer.failed</code>, with JetStream’s acknowledgement. The setting
     * <code>nats_targets</code> has to list the subject for the namespace. Events without a sink are not
     * kept.
     * @return a copy with it
     */
    public CreateNamespace eventSink(Field<String> eventSink) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when it has failed, or expired.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public CreateNamespace onFailure(Field<Hook> onFailure) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when it has succeeded.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public CreateNamespace onSuccess(Field<Hook> onSuccess) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public CreateNamespace onRecovery(Field<Hook> onRecovery) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when instants did not fire, though the schedule was not paused.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onMissed(Hook value) {
        return onMissed(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
     * @return a copy with it
     */
    public CreateNamespace onMissed(Field<Hook> onMissed) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when the schedule has paused itself after failures in a row.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onPaused(Hook value) {
        return onPaused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
     * @return a copy with it
     */
    public CreateNamespace onPaused(Field<Hook> onPaused) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace onLate(Hook value) {
        return onLate(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     * @return a copy with it
     */
    public CreateNamespace onLate(Field<Hook> onLate) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace secret(String value) {
        return secret(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param secret Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.
     * @return a copy with it
     */
    public CreateNamespace secret(Field<String> secret) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public CreateNamespace managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public CreateNamespace managedBy(Field<String> managedBy) {
        return new CreateNamespace(
                name,
                numShards,
                history,
                retention,
                answers,
                retryPolicy,
                limits,
                quotas,
                callbackBatch,
                eventSink,
                onFailure,
                onSuccess,
                onRecovery,
                onMissed,
                onPaused,
                onLate,
                secret,
                managedBy);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("name", Json.of(name));
        numShards.putInto(sent, "numShards", Json::of);
        history.putInto(sent, "history", HistoryMode::toJson);
        retention.putInto(sent, "retention", Values::toJson);
        answers.putInto(sent, "answers", CallbackAnswers::toJson);
        retryPolicy.putInto(sent, "retryPolicy", RetryPolicy::toJson);
        limits.putInto(sent, "limits", FlowLimits::toJson);
        quotas.putInto(sent, "quotas", Quotas::toJson);
        callbackBatch.putInto(sent, "callbackBatch", CallbackBatch::toJson);
        eventSink.putInto(sent, "eventSink", Json::of);
        onFailure.putInto(sent, "onFailure", Hook::toJson);
        onSuccess.putInto(sent, "onSuccess", Hook::toJson);
        onRecovery.putInto(sent, "onRecovery", Hook::toJson);
        onMissed.putInto(sent, "onMissed", Hook::toJson);
        onPaused.putInto(sent, "onPaused", Hook::toJson);
        onLate.putInto(sent, "onLate", Hook::toJson);
        secret.putInto(sent, "secret", Json::of);
        managedBy.putInto(sent, "managedBy", Json::of);
        return Json.object(sent);
    }
}