package dev.tocsin.receiver;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import dev.tocsin.client.error.InvalidArgumentException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * The HTTP response that a callback gets. Make one with {@code done}, {@code rescheduleAt}, {@code retry} or {@code fail}.
 *
 * @param status of the response
 * @param headers of the response
 * @param body text in UTF-8
 */
public record Answer(int status, Map<String, String> headers, String body) {
    /** As much of a response as the server shows; longer reasons would only make responses of batches long. */
    private static final int REASON_CHARS_MAX = 200;

    /**
     * The work is done: the timer is completed.
     *
     * @return 200
     */
    public static Answer done() {
        return json(200, Json.object().with("ok", true));
    }

    /**
     * The work is done for now: the timer fires again, with the payload that it has.
     *
     * @param instant when
     * @return 200
     */
    public static Answer rescheduleAt(Instant instant) {
        return json(200, Json.object().with("nextExecuteAt", Values.toJson(instant)));
    }

    /**
     * The work is done for now: the timer fires again, with another payload.
     *
     * @param instant when
     * @param payload the next one
     * @return 200
     */
    public static Answer rescheduleAt(Instant instant, Json payload) {
        return json(200, Json.object().with("nextExecuteAt", Values.toJson(instant)).with("payload", payload));
    }

    /**
     * The work could not be done: the timer's retry policy decides.
     *
     * @return 503
     */
    public static Answer retry() {
        return new Answer(503, Map.of(), "");
    }

    /**
     * The work could not be done: the timer's retry policy decides, and waits at least so long.
     *
     * @param after zero or longer; part of a second counts as a whole
     * @return 503
     */
    public static Answer retry(Duration after) {
        if (after.isNegative()) {
            throw new InvalidArgumentException("after: " + after + " is negative; give the time to wait, or leave it out");
        }
        long seconds = after.getSeconds() + (after.getNano() > 0 ? 1 : 0);
        return new Answer(503, Map.of("retry-after", Long.toString(seconds)), "");
    }

    /**
     * The work can never be done: the timer fails, without another attempt.
     *
     * @param reason shown with the timer; 200 characters of it are sent
     * @return 422
     */
    public static Answer fail(String reason) {
        boolean isLong = reason.codePointCount(0, reason.length()) > REASON_CHARS_MAX;
        String sent = isLong ? reason.substring(0, reason.offsetByCodePoints(0, REASON_CHARS_MAX - 1)) + "…" : reason;
        return json(422, Json.object().with("ok", false).with("reason", sent));
    }

    /**
     * Whether the server calls again for the same firing.
     *
     * @return true for {@code retry}
     */
    public boolean retries() {
        return status == 503;
    }

    /** Whether the work is done: neither {@code retry} nor {@code fail}. */
    boolean isDone() {
        return !retries() && status != 422;
    }

    private static Answer json(int status, Json body) {
        return new Answer(status, Map.of("content-type", "application/json"), body.toString());
    }

    /** A request that no handler gets. */
    static Answer refused(int status, String reason) {
        return new Answer(status, Map.of("content-type", "text/plain; charset=utf-8"), reason);
    }

    /** For storing. */
    String toText() {
        Json stored = Json.object().with("status", status).with("headers", Json.object(headers, Json::of));
        return stored.with("body", body).toString();
    }

    /** As it was stored. */
    static Answer fromText(String text) {
        Json stored = Json.parse(text);
        return new Answer(
                stored.get("status").asInt(), stored.get("headers").asMap(Json::asString), stored.get("body").asString());
    }

    /**
     * The body to send.
     *
     * @return bytes in UTF-8
     */
    public byte[] bytes() {
        return body.getBytes(StandardCharsets.UTF_8);
    }
}
