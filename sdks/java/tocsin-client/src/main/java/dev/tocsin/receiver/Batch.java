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

    /**
     * What is read of a batch.
     *
     * @param firings of the callbacks that can be read
     * @param unreadable the webhook-id of each other, which is answered 503; without one there is nothing to answer
     */
    record Read(List<Firing> firings, List<String> unreadable) {}

    /** Reads a verified request. Empty: it is no batch. */
    static Optional<Read> read(Map<String, String> headers, byte[] body) {
        Optional<List<String>> items;
        try {
            items = items(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString());
        } catch (CharacterCodingException foreign) {
            return Optional.empty();
        }
        return items.map(texts -> {
            Read read = new Read(new ArrayList<>(), new ArrayList<>());
            texts.forEach(text -> add(read, headers, text));
            return read;
        });
    }

    private static void add(Read read, Map<String, String> headers, String text) {
        Map<String, String> named = new HashMap<>(headers);
        String webhookId;
        try {
            Json item = Json.parse(text);
            webhookId = item.get("webhookId").asString();
            if (item.has("traceparent")) {
                named.put("traceparent", item.get("traceparent").asString());
            }
        } catch (JsonException foreign) {
            return;
        }
        named.put("webhook-id", webhookId);
        Firing.item(named, text.getBytes(StandardCharsets.UTF_8)).ifPresentOrElse(
                read.firings::add, () -> read.unreadable.add(webhookId));
    }

    /**
     * The JSON texts of the items. They are separated without being read, so that one that can't be read takes no other along.
     * Empty: there is no such list.
     */
    private static Optional<List<String>> items(String text) {
        List<String> items = new ArrayList<>();
        int depth = 0;
        int begin = 0;
        String member = "";
        boolean within = false;
        boolean found = false;
        for (int at = 0; at < text.length(); at++) {
            char each = text.charAt(at);
            if (each == '"') {
                int end = endOfString(text, at);
                member = depth == 1 ? text.substring(at + 1, Math.min(end, text.length())) : member;
                at = end;
            } else if (each == '[' || each == '{') {
                depth++;
                if (depth == 2) {
                    within = each == '[' && member.equals("items");
                    found |= within;
                } else if (depth == 3) {
                    begin = at;
                }
            } else if (each == ']' || each == '}') {
                if (depth == 3 && within) {
                    items.add(text.substring(begin, at + 1));
                }
                depth--;
            }
        }
        return found && depth == 0 ? Optional.of(items) : Optional.empty();
    }

    /** Where the string that begins there has its closing quote. */
    private static int endOfString(String text, int begin) {
        int at = begin + 1;
        while (at < text.length() && text.charAt(at) != '"') {
            at += text.charAt(at) == '\\' ? 2 : 1;
        }
        return at;
    }

    /** The response with these results. */
    static Answer response(List<String> results) {
        return new Answer(200, Map.of("content-type", JSON_TYPE), "{\"items\":[" + String.join(",", results) + "]}");
    }

    /** The answer as that of one timer. */
    static String result(String webhookId, Answer answer) {
        String after = answer.headers().get("retry-after");
        String body = JSON_TYPE.equals(answer.headers().get("content-type")) ? answer.body().strip() : "{}";
        String members = body.substring(1, body.length() - 1);
        return "{\"webhookId\":" + Json.of(webhookId) + ",\"status\":" + answer.status()
                + (after == null ? "" : ",\"retryAfter\":" + after) + (members.isEmpty() ? "" : "," + members) + "}";
    }
}
