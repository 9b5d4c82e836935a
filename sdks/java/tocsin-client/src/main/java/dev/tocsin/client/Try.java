package dev.tocsin.client;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * One try of a call, after it ended: for {@code ClientBuilder.onTry}.
 *
 * @param operation the operation's id, such as createTimer
 * @param number counts from 1
 * @param status the HTTP status; null: no answer arrived
 * @param code the code of an error that Tocsin answered, such as NOT_READY; null otherwise
 * @param error why no answer arrived; null otherwise
 * @param seconds how long the try took
 * @param pauseSeconds how long until the next try; null: there is none
 */
public record Try(
        String operation,
        int number,
        @Nullable Integer status,
        @Nullable String code,
        @Nullable String error,
        double seconds,
        @Nullable Double pauseSeconds) {
    /** Such as {@code createTimer, try 1: 503 NOT_READY in 0.012 s, next try in 0.071 s}. */
    @Override
    public String toString() {
        String outcome = status == null ? error : code == null ? status.toString() : status + " " + code;
        String text = String.format(Locale.ROOT, "%s, try %d: %s in %.3f s", operation, number, outcome, seconds);
        return pauseSeconds == null ? text : text + String.format(Locale.ROOT, ", next try in %.3f s", pauseSeconds);
    }
}
