package dev.tocsin.receiver;

import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;

/**
 * One attempt to fire a timer, or an occurrence of a schedule.
 *
 * <p>A timer with the method GET or HEAD sends no body: without a raw body of the timer, namespace and id are empty, the
 * attempt is 0, and both instants are that of the request.
 *
 * @param webhookId the same for all attempts of one firing: use it to recognise repetitions
 * @param namespace the timer's namespace
 * @param timerId the timer's or the schedule's id
 * @param executeAt when it was due
 * @param firedAt when this attempt began
 * @param attempt counts from 1
 * @param payload the timer's payload; JSON's null for a raw body
 * @param body the request's body, as it arrived
 * @param headers the request's headers; their names are in lower case
 */
public record Firing(
        String webhookId,
        String namespace,
        String timerId,
        Instant executeAt,
        Instant firedAt,
        long attempt,
        Json payload,
        byte[] body,
        Map<String, String> headers) {
    /**
     * W3C Trace Context of the program that created the timer.
     *
     * @return null if it had none
     */
    public String traceparent() {
        return headers.get("traceparent");
    }

    /** Reads a verified request. InvalidArgumentException: it is no callback of Tocsin. */
    static Firing read(Map<String, String> headers, byte[] body) {
        String webhookId = headers.getOrDefault("webhook-id", "");
        if (headers.containsKey("tocsin-timer-id")) {
            return new Firing(
                    webhookId,
                    headers.getOrDefault("tocsin-namespace", ""),
                    URLDecoder.decode(headers.get("tocsin-timer-id").replace("+", "%2B"), StandardCharsets.UTF_8),
                    Values.parseInstant(headers.getOrDefault("tocsin-execute-at", "")),
                    Values.parseInstant(headers.getOrDefault("tocsin-fired-at", "")),
                    Long.parseLong(headers.getOrDefault("tocsin-attempt", "")),
                    Json.NULL,
                    body,
                    headers);
        }
        if (body.length == 0) {
            Instant sentAt = Instant.ofEpochSecond(Long.parseLong(headers.getOrDefault("webhook-timestamp", "")));
            return new Firing(webhookId, "", "", sentAt, sentAt, 0, Json.NULL, body, headers);
        }
        Json envelope = Json.parse(text(body));
        return new Firing(
                webhookId,
                envelope.read("namespace", Json::asString),
                envelope.read("timerId", Json::asString),
                envelope.read("executeAt", Values::toInstant),
                envelope.read("firedAt", Values::toInstant),
                envelope.read("attempt", Json::asLong),
                envelope.get("payload"),
                body,
                headers);
    }

    private static String text(byte[] body) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
        } catch (CharacterCodingException wrong) {
            throw new IllegalArgumentException("the body is not UTF-8", wrong);
        }
    }
}
