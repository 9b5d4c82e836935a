package dev.tocsin.receiver;

import dev.tocsin.client.Json;
import dev.tocsin.client.JsonException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Several callbacks in one request, and their answers in one response. */
final class Batch {
    private static final String PREFIX = "batch_";
    private static final String JSON_TYPE = "application/json";

    private Batch() {}

    /** Whether the request is a batch, by its webhook-id, which is signed. */
    static boolean is(Map<String, String> headers) {
        return headers.getOrDefault("webhook-id", "").startsWith(PREFIX);
    }

    /** Reads a verified request. Empty: it is no batch, or one of its callbacks is not of the timer that its id names. */
    static Optional<List<Firing>> read(Map<String, String> headers, byte[] body) {
        List<Firing> firings = new ArrayList<>();
        try {
            Json batch = Json.parse(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString());
            for (Json item : batch.get("items").asList()) {
                Map<String, String> named = new HashMap<>(headers);
                named.put("webhook-id", item.get("webhookId").asString());
                if (item.has("traceparent")) {
                    named.put("traceparent", item.get("traceparent").asString());
                }
                Optional<Firing> firing = Firing.item(named, item.toString().getBytes(StandardCharsets.UTF_8));
                if (firing.isEmpty()) {
                    return Optional.empty();
                }
                firings.add(firing.get());
            }
        } catch (JsonException | CharacterCodingException foreign) {
            return Optional.empty();
        }
        return Optional.of(firings);
    }

    /** The response with these results. */
    static Answer response(List<String> results) {
        return new Answer(200, Map.of("content-type", JSON_TYPE), "{\"items\":[" + String.join(",", results) + "]}");
    }

    /** The answer as that of one timer. */
    static String result(Firing firing, Answer answer) {
        String after = answer.headers().get("retry-after");
        String body = JSON_TYPE.equals(answer.headers().get("content-type")) ? answer.body().strip() : "{}";
        String members = body.substring(1, body.length() - 1);
        return "{\"webhookId\":" + Json.of(firing.webhookId()) + ",\"status\":" + answer.status()
                + (after == null ? "" : ",\"retryAfter\":" + after) + (members.isEmpty() ? "" : "," + members) + "}";
    }
}
