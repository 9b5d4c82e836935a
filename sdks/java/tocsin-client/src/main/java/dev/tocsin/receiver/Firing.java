package dev.tocsin.receiver;

import dev.tocsin.client.Json;
import dev.tocsin.client.JsonException;
import dev.tocsin.client.TimerUuids;
import dev.tocsin.client.Values;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One attempt to fire a timer, or an occurrence of a schedule. The signature proves all of it but the headers, whose names
 * other than {@code webhook-id} and {@code webhook-timestamp} anybody can have altered.
 *
 * <p>Beside a raw body, both instants are that of the request, and the attempt is 0: what else the headers have of these is not
 * signed. A timer with the method GET or HEAD sends no body: unless the timer has an empty raw body, namespace and id are
 * empty, too.
 *
 * @param webhookId the same for all attempts of one firing: use it to recognise repetitions
 * @param namespace the timer's namespace
 * @param timerId the timer's or the schedule's id
 * @param executeAt when it was due
 * @param firedAt when this attempt began
 * @param attempt counts from 1; 0: unknown
 * @param payload the timer's payload; JSON's null for a raw body
 * @param body the request's body, as it arrived; of a batch, this timer's part of it
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
    private static final Pattern WEBHOOK_ID = Pattern.compile("msg_([0-9a-f]{32})_.+", Pattern.DOTALL);

    /**
     * W3C Trace Context of the program that created the timer.
     *
     * @return null if it had none
     */
    public @Nullable String traceparent() {
        return headers.get("traceparent");
    }

    /**
     * Reads a verified request: as an envelope, or as a raw body whose headers name the timer. Empty: neither is of the timer
     * whose UUID the webhook-id has, which is signed.
     */
    static Optional<Firing> read(Map<String, String> headers, byte[] body) {
        String webhookId = headers.getOrDefault("webhook-id", "");
        String timestamp = headers.getOrDefault("webhook-timestamp", "");
        Firing envelope = envelope(webhookId, headers, body);
        if (envelope != null && isOf(webhookId, envelope.namespace, envelope.timerId)) {
            return Optional.of(envelope);
        }
        String namespace = headers.get("tocsin-namespace");
        String encodedId = headers.get("tocsin-timer-id");
        boolean named = namespace != null || encodedId != null;
        if (!timestamp.matches(Signatures.TIMESTAMP) || (named ? namespace == null || encodedId == null : body.length > 0)) {
            return Optional.empty();
        }
        Instant sentAt = Instant.ofEpochSecond(Long.parseLong(timestamp));
        if (!named) {
            return Optional.of(new Firing(webhookId, "", "", sentAt, sentAt, 0, Json.NULL, body, headers));
        }
        String timerId = decoded(encodedId);
        return timerId != null && isOf(webhookId, namespace, timerId)
                ? Optional.of(new Firing(webhookId, namespace, timerId, sentAt, sentAt, 0, Json.NULL, body, headers))
                : Optional.empty();
    }

    /** Reads one callback of a verified batch. Empty: it is not of the timer that its webhook-id names. */
    static Optional<Firing> item(Map<String, String> headers, byte[] body) {
        String webhookId = headers.getOrDefault("webhook-id", "");
        return Optional.ofNullable(envelope(webhookId, headers, body))
                .filter(found -> isOf(webhookId, found.namespace, found.timerId));
    }

    /** Null: the body is none. */
    private static @Nullable Firing envelope(String webhookId, Map<String, String> headers, byte[] body) {
        try {
            Json envelope = Json.parse(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString());
            return !envelope.has("payload") ? null : new Firing(
                    webhookId,
                    envelope.read("namespace", Json::asString),
                    envelope.read("timerId", Json::asString),
                    envelope.read("executeAt", Values::toInstant),
                    envelope.read("firedAt", Values::toInstant),
                    envelope.read("attempt", Json::asLong),
                    envelope.get("payload"),
                    body,
                    headers);
        } catch (JsonException | CharacterCodingException raw) {
            return null;
        }
    }

    /** Null: it is not percent-encoded. */
    private static @Nullable String decoded(String id) {
        try {
            return URLDecoder.decode(id.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }

    /** Whether the webhook-id is that of a firing of this timer or schedule. */
    private static boolean isOf(String webhookId, String namespace, String timerId) {
        Matcher found = WEBHOOK_ID.matcher(webhookId);
        // Names have no NUL, with which those of another timer or schedule could be written.
        if (!found.matches() || (namespace + timerId).indexOf('\0') >= 0) {
            return false;
        }
        UUID uuid = new UUID(
                Long.parseUnsignedLong(found.group(1).substring(0, 16), 16),
                Long.parseUnsignedLong(found.group(1).substring(16), 16));
        return uuid.equals(TimerUuids.ofTimer(namespace, timerId)) || uuid.equals(TimerUuids.ofSchedule(namespace, timerId));
    }
}
