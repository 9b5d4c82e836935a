// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Changes to a namespace; absent fields stay unchanged. The hooks are those of timers, schedules and
 * monitors without their own for the same event; null removes one, and null removes
 * <code>managedBy</code>, <code>limits</code>, <code>callbackBatch</code> and <code>eventSink</code>,
 * which are otherwise replaced as a whole.
 *
 * @param name The namespace's name.
 * @param history Which finished timers stay visible.
 * @param retention How long finished timers stay visible; at most 3653d.
 * @param secret A new signing secret; null removes the secret.
 * @param paused While true, none of its timers fires.
 * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
 * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
 * @param retryPolicy The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
 * @param limits The limits of all attempts of the namespace together.
 * @param quotas Changes to its quotas; null removes all.
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
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 * @param dryRun Writes nothing: the response shows what would be written. Default false.
 */
public record UpdateNamespace(
        String name,
        Field<HistoryMode> history,
        Field<Duration> retention,
        Field<String> secret,
        Field<Boolean> paused,
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
        Field<String> managedBy,
        Field<Long> expectedVersion,
        Field<Boolean> dryRun) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param name The namespace's name.
     * @return the request
     */
    public static UpdateNamespace of(String name) {
        return new UpdateNamespace(
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
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Which finished timers stay visible.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace history(HistoryMode value) {
        return history(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param history Which finished timers stay visible.
     * @return a copy with it
     */
    public UpdateNamespace history(Field<HistoryMode> history) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * How long finished timers stay visible; at most 3653d.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace retention(Duration value) {
        return retention(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retention How long finished timers stay visible; at most 3653d.
     * @return a copy with it
     */
    public UpdateNamespace retention(Field<Duration> retention) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * A new signing secret; null removes the secret.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace secret(String value) {
        return secret(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param secret A new signing secret; null removes the secret.
     * @return a copy with it
     */
    public UpdateNamespace secret(Field<String> secret) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * While true, none of its timers fires.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace paused(boolean value) {
        return paused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param paused While true, none of its timers fires.
     * @return a copy with it
     */
    public UpdateNamespace paused(Field<Boolean> paused) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
     * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace answers(CallbackAnswers value) {
        return answers(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
     * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
     * @return a copy with it
     */
    public UpdateNamespace answers(Field<CallbackAnswers> answers) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace retryPolicy(RetryPolicy value) {
        return retryPolicy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param retryPolicy The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
     * @return a copy with it
     */
    public UpdateNamespace retryPolicy(Field<RetryPolicy> retryPolicy) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The limits of all attempts of the namespace together.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace limits(FlowLimits value) {
        return limits(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param limits The limits of all attempts of the namespace together.
     * @return a copy with it
     */
    public UpdateNamespace limits(Field<FlowLimits> limits) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Changes to its quotas; null removes all.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace quotas(Quotas value) {
        return quotas(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param quotas Changes to its quotas; null removes all.
     * @return a copy with it
     */
    public UpdateNamespace quotas(Field<Quotas> quotas) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace callbackBatch(CallbackBatch value) {
        return callbackBatch(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     * @return a copy with it
     */
    public UpdateNamespace callbackBatch(Field<CallbackBatch> callbackBatch) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
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
    public UpdateNamespace eventSink(String value) {
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
    public UpdateNamespace eventSink(Field<String> eventSink) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when it has failed, or expired.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onFailure(Hook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed, or expired.
     * @return a copy with it
     */
    public UpdateNamespace onFailure(Field<Hook> onFailure) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when it has succeeded.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onSuccess(Hook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public UpdateNamespace onSuccess(Field<Hook> onSuccess) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onRecovery(Hook value) {
        return onRecovery(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onRecovery Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before
     * its replay.
     * @return a copy with it
     */
    public UpdateNamespace onRecovery(Field<Hook> onRecovery) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when instants did not fire, though the schedule was not paused.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onMissed(Hook value) {
        return onMissed(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onMissed Who is notified when instants did not fire, though the schedule was not paused.
     * @return a copy with it
     */
    public UpdateNamespace onMissed(Field<Hook> onMissed) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when the schedule has paused itself after failures in a row.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onPaused(Hook value) {
        return onPaused(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onPaused Who is notified when the schedule has paused itself after failures in a row.
     * @return a copy with it
     */
    public UpdateNamespace onPaused(Field<Hook> onPaused) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace onLate(Hook value) {
        return onLate(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onLate Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
     * @return a copy with it
     */
    public UpdateNamespace onLate(Field<Hook> onLate) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public UpdateNamespace managedBy(Field<String> managedBy) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public UpdateNamespace expectedVersion(Field<Long> expectedVersion) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * Writes nothing: the response shows what would be written. Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public UpdateNamespace dryRun(boolean value) {
        return dryRun(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dryRun Writes nothing: the response shows what would be written. Default false.
     * @return a copy with it
     */
    public UpdateNamespace dryRun(Field<Boolean> dryRun) {
        return new UpdateNamespace(
                name,
                history,
                retention,
                secret,
                paused,
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
                managedBy,
                expectedVersion,
                dryRun);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("name", Json.of(name));
        history.putInto(sent, "history", HistoryMode::toJson);
        retention.putInto(sent, "retention", Values::toJson);
        secret.putInto(sent, "secret", Json::of);
        paused.putInto(sent, "paused", Json::of);
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
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        dryRun.putInto(sent, "dryRun", Json::of);
        return Json.object(sent);
    }
}