// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Changes to a namespace; absent fields stay unchanged.
 *
 * @param name The namespace's name.
 * @param history Which finished timers stay visible.
 * @param retention How long finished timers stay visible; at most 3653d.
 * @param secret A new signing secret; null removes the secret.
 * @param paused While true, none of its timers fires.
 * @param answers What a 2xx response to a callback means. standard: success, unless its body is a JSON object with
 * ok: false or nextExecuteAt. strict: success only with an empty body or ok: true.
 * @param retryPolicy The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
 */
public record UpdateNamespace(
        String name,
        Field<HistoryMode> history,
        Field<Duration> retention,
        Field<String> secret,
        Field<Boolean> paused,
        Field<CallbackAnswers> answers,
        Field<RetryPolicy> retryPolicy) {

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
                retryPolicy);
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
                retryPolicy);
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
                retryPolicy);
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
                retryPolicy);
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
                retryPolicy);
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
                retryPolicy);
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
        return Json.object(sent);
    }
}