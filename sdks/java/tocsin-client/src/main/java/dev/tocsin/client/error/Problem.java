package dev.tocsin.client.error;

import dev.tocsin.client.Json;
import dev.tocsin.client.JsonException;
import dev.tocsin.client.model.BadField;
import dev.tocsin.client.model.ItemError;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What an answer other than 2xx contains.
 *
 * @param status the HTTP status
 * @param code such as TIMER_NOT_FOUND; empty if the answer was not Tocsin's, as from a proxy
 * @param message an explanation
 * @param fields each invalid field
 * @param correlationId identifies the request in the server's log; may be null
 * @param retryAfterSeconds from {@code Retry-After}; may be null
 */
public record Problem(
        int status, String code, String message, List<BadField> fields, @Nullable String correlationId,
        @Nullable Double retryAfterSeconds) {
    private static final int MESSAGE_CHARS_MAX = 200;

    /**
     * Reads an answer.
     *
     * @param status the HTTP status
     * @param body of the answer
     * @param correlationId of the answer's header, or null
     * @param retryAfter of the answer's header, or null; a date counts as absent, since Tocsin sends none
     * @return what it contains
     */
    public static Problem read(
            int status, String body, @Nullable String correlationId, @Nullable String retryAfter) {
        Double seconds = retryAfter != null && retryAfter.matches("[0-9]+\\.?[0-9]*|\\.[0-9]+")
                ? Double.valueOf(retryAfter) : null;
        try {
            Json found = Json.parse(body);
            if (found.has("error") && found.get("error").isString()) {
                String id = found.readOptional("correlationId", Json::asString);
                String message = found.readOptional("message", Json::asString);
                return new Problem(
                        status, found.get("error").asString(), message == null ? "" : message, fieldsOf(found),
                        id == null ? correlationId : id, seconds);
            }
        } catch (JsonException notTocsins) {
            // A proxy's page: its beginning is the message.
        }
        String start = body.substring(0, Math.min(body.length(), MESSAGE_CHARS_MAX));
        return new Problem(status, "", start.isEmpty() ? "no explanation" : start, List.of(), correlationId, seconds);
    }

    private static List<BadField> fieldsOf(Json found) {
        List<BadField> fields = found.readOptional("errors", each -> each.asList(BadField::fromJson));
        return fields == null ? List.of() : new ArrayList<>(fields);
    }

    /**
     * What is wrong with one timer of a batch.
     *
     * @param item the answer's part for it
     * @return the same
     */
    public static Problem of(ItemError item) {
        return new Problem((int) item.status(), item.error(), item.message(), item.errors(), null, null);
    }

    /**
     * The exception of the code; for codes that this version doesn't know, of the status.
     *
     * @return an exception to throw
     */
    public ApiException toException() {
        Function<Problem, ApiException> known = ErrorCodes.EXCEPTIONS.get(code);
        return known != null ? known.apply(this) : ofStatus();
    }

    private ApiException ofStatus() {
        return switch (status) {
            case 401 -> new UnauthenticatedException(this);
            case 403 -> new ForbiddenException(this);
            case 404 -> new NotFoundException(this);
            case 409 -> new ConflictException(this);
            case 429 -> new OverloadedException(this);
            case 408, 502, 503, 504 -> new UnavailableException(this);
            default -> status >= 400 && status < 500 ? new InvalidInputException(this) : new ServerErrorException(this);
        };
    }
}
