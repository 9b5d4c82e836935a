package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.Problem;
import dev.tocsin.client.error.ServerErrorException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** What was answered. The headers' names are in lower case. */
record Reply(int status, Map<String, String> headers, byte[] body) {
    private static final int MESSAGE_CHARS_MAX = 200;

    String text() {
        return new String(body, StandardCharsets.UTF_8);
    }

    boolean succeeded() {
        return status >= 200 && status < 300;
    }

    /** The answer's content. ServerErrorException: it is another, as when a proxy answers instead. */
    <T> T read(Function<Json, T> read) {
        try {
            return read.apply(Json.parse(text()));
        } catch (JsonException wrong) {
            String start = text().substring(0, Math.min(text().length(), MESSAGE_CHARS_MAX));
            String message = "the answer can't be read (" + wrong.getMessage() + "): '" + start
                    + "'; check that the URL is that of a Tocsin server";
            throw new ServerErrorException(new Problem(status, "", message, List.of(), headers.get("x-correlation-id"),
                    null));
        }
    }

    /** The error that an answer other than 2xx means. */
    ApiException error() {
        return Problem.read(status, text(), headers.get("x-correlation-id"), headers.get("retry-after")).toException();
    }
}
