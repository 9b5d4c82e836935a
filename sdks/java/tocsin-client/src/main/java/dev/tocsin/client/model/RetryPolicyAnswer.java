// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A retry policy with its defaults filled in.
 *
 * @param maxAttempts Maximum number of attempts, including the first.
 * @param initialInterval Delay before the second attempt.
 * @param backoffMultiplier Factor by which each delay grows.
 * @param maxInterval Maximum delay.
 * @param maxAttemptsDuration No attempt starts later than this after the first. Null if absent.
 */
public record RetryPolicyAnswer(
        long maxAttempts,
        Duration initialInterval,
        double backoffMultiplier,
        Duration maxInterval,
        @Nullable Duration maxAttemptsDuration) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static RetryPolicyAnswer fromJson(Json source) {
        return new RetryPolicyAnswer(
                source.read("maxAttempts", Json::asLong),
                source.read("initialInterval", Values::toDuration),
                source.read("backoffMultiplier", Json::asDouble),
                source.read("maxInterval", Values::toDuration),
                source.readOptional("maxAttemptsDuration", Values::toDuration));
    }
}