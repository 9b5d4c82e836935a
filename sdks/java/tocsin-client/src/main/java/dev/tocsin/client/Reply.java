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
            throw foreign(wrong.getMessage());
        }
    }

    /** Of an operation that is answered by 204. ServerErrorException: the answer is another success. */
    Void readNothing() {
        if (status != 204) {
            throw foreign("its status is not 204");
        }
        return null;
    }

    /** The error of a success that no Tocsin server answers. */
    ServerErrorException foreign(String reason) {
        String start = text().substring(0, Math.min(text().length(), MESSAGE_CHARS_MAX));
        String message = "the answer can't be read (" + reason + "): '" + start
                + "'; check that the URL is that of a Tocsin server";
        return new ServerErrorException(new Problem(status, "", message, List.of(), headers.get("x-correlation-id"), null));
    }

    /** The error that an answer other than 2xx means. */
    ApiException error() {
        return Problem.read(status, text(), headers.get("x-correlation-id"), headers.get("retry-after")).toException();
    }
}
