// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How often and for how long failed attempts are retried. The delay grows from
 * <code>initialInterval</code> by <code>backoffMultiplier</code> up to <code>maxInterval</code>.
 *
 * @param maxAttempts Maximum number of attempts, including the first. Default 10.
 * @param maxAttemptsDuration No attempt starts later than this after the first.
 * @param initialInterval Delay before the second attempt. Default 5s, or maxInterval if shorter.
 * @param backoffMultiplier Factor by which each delay grows. Default 3.
 * @param maxInterval Maximum delay. Default 4h, or initialInterval if longer.
 */
public record RetryPolicy(
        Field<Long> maxAttempts,
        Field<Duration> maxAttemptsDuration,
        Field<Duration> initialInterval,
        Field<Double> backoffMultiplier,
        Field<Duration> maxInterval) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @return the request
     */
    public static RetryPolicy of() {
        return new RetryPolicy(
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * Maximum number of attempts, including the first. Default 10.
     *
     * @param value its value
     * @return a copy with it
     */
    public RetryPolicy maxAttempts(long value) {
        return maxAttempts(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxAttempts Maximum number of attempts, including the first. Default 10.
     * @return a copy with it
     */
    public RetryPolicy maxAttempts(Field<Long> maxAttempts) {
        return new RetryPolicy(
                maxAttempts,
                maxAttemptsDuration,
                initialInterval,
                backoffMultiplier,
                maxInterval);
    }

    /**
     * No attempt starts later than this after the first.
     *
     * @param value its value
     * @return a copy with it
     */
    public RetryPolicy maxAttemptsDuration(Duration value) {
        return maxAttemptsDuration(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxAttemptsDuration No attempt starts later than this after the first.
     * @return a copy with it
     */
    public RetryPolicy maxAttemptsDuration(Field<Duration> maxAttemptsDuration) {
        return new RetryPolicy(
                maxAttempts,
                maxAttemptsDuration,
                initialInterval,
                backoffMultiplier,
                maxInterval);
    }

    /**
     * Delay before the second attempt. Default 5s, or maxInterval if shorter.
     *
     * @param value its value
     * @return a copy with it
     */
    public RetryPolicy initialInterval(Duration value) {
        return initialInterval(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param initialInterval Delay before the second attempt. Default 5s, or maxInterval if shorter.
     * @return a copy with it
     */
    public RetryPolicy initialInterval(Field<Duration> initialInterval) {
        return new RetryPolicy(
                maxAttempts,
                maxAttemptsDuration,
                initialInterval,
                backoffMultiplier,
                maxInterval);
    }

    /**
     * Factor by which each delay grows. Default 3.
     *
     * @param value its value
     * @return a copy with it
     */
    public RetryPolicy backoffMultiplier(double value) {
        return backoffMultiplier(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param backoffMultiplier Factor by which each delay grows. Default 3.
     * @return a copy with it
     */
    public RetryPolicy backoffMultiplier(Field<Double> backoffMultiplier) {
        return new RetryPolicy(
                maxAttempts,
                maxAttemptsDuration,
                initialInterval,
                backoffMultiplier,
                maxInterval);
    }

    /**
     * Maximum delay. Default 4h, or initialInterval if longer.
     *
     * @param value its value
     * @return a copy with it
     */
    public RetryPolicy maxInterval(Duration value) {
        return maxInterval(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param maxInterval Maximum delay. Default 4h, or initialInterval if longer.
     * @return a copy with it
     */
    public RetryPolicy maxInterval(Field<Duration> maxInterval) {
        return new RetryPolicy(
                maxAttempts,
                maxAttemptsDuration,
                initialInterval,
                backoffMultiplier,
                maxInterval);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        maxAttempts.putInto(sent, "maxAttempts", Json::of);
        maxAttemptsDuration.putInto(sent, "maxAttemptsDuration", Values::toJson);
        initialInterval.putInto(sent, "initialInterval", Values::toJson);
        backoffMultiplier.putInto(sent, "backoffMultiplier", Json::of);
        maxInterval.putInto(sent, "maxInterval", Values::toJson);
        return Json.object(sent);
    }
}