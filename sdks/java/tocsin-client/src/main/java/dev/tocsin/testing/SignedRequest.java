package dev.tocsin.testing;

import dev.tocsin.client.Json;
import dev.tocsin.client.TimerUuids;
import dev.tocsin.client.Values;
import dev.tocsin.receiver.Firing;
import dev.tocsin.receiver.Signatures;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * A callback as the server would send it: for tests of a handler without a server.
 *
 * @param headers of the request
 * @param body of the request
 */
public record SignedRequest(Map<String, String> headers, byte[] body) {
    /**
     * A firing of the namespace {@code default}, for a handler's test.
     *
     * @param timerId the timer's id
     * @param executeAt when it was due
     * @param payload the timer's
     * @return a first attempt
     */
    public static Firing firing(String timerId, Instant executeAt, Json payload) {
        String uuid = TimerUuids.ofTimer("default", timerId).toString().replace("-", "");
        // Its end distinguishes firings of the same timer.
        String webhookId = "msg_" + uuid + "_" + UUID.randomUUID();
        return new Firing(webhookId, "default", timerId, executeAt, executeAt, 1, payload, new byte[0], Map.of());
    }

    /**
     * The request that brings a firing, signed now.
     *
     * @param firing with a payload, or with a raw body
     * @param secret of the namespace
     * @return headers and body to send
     */
    public static SignedRequest sign(Firing firing, String secret) {
        Json envelope = Json.object()
                .with("namespace", firing.namespace())
                .with("timerId", firing.timerId())
                .with("executeAt", Values.toJson(firing.executeAt()))
                .with("firedAt", Values.toJson(firing.firedAt()))
                .with("attempt", firing.attempt())
                .with("payload", firing.payload());
        byte[] body = firing.body().length > 0 ? firing.body() : envelope.toString().getBytes(StandardCharsets.UTF_8);
        long timestamp = Instant.now().getEpochSecond();
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("content-type", "application/json");
        if (firing.body().length > 0) {
            headers.put("tocsin-namespace", firing.namespace());
            headers.put("tocsin-timer-id", URLEncoder.encode(firing.timerId(), StandardCharsets.UTF_8).replace("+", "%20"));
        }
        headers.putAll(firing.headers());
        headers.put("webhook-id", firing.webhookId());
        headers.put("webhook-timestamp", Long.toString(timestamp));
        headers.put("webhook-signature", Signatures.sign(List.of(secret), firing.webhookId(), timestamp, body));
        return new SignedRequest(headers, body);
    }
}
