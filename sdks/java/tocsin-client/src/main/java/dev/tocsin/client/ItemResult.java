package dev.tocsin.client;

import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.model.Timer;
import org.jspecify.annotations.Nullable;

/**
 * What became of one timer of a batch: exactly one of timer and error is not null.
 *
 * @param timer as created, or null
 * @param error an ApiException, a TransportException, an InvalidArgumentException if it could not be sent, or null
 * @param existing with {@code onConflict} keep: the timer existed, and nothing was written
 * @param replayed an earlier request with the same idempotency key has created it
 */
public record ItemResult(@Nullable Timer timer, @Nullable TocsinException error, boolean existing, boolean replayed) {
    /**
     * The timer.
     *
     * @return not null
     * @throws TocsinException the error, if there is one
     */
    public Timer orThrow() {
        if (error != null) {
            throw error;
        }
        return timer;
    }

    static ItemResult failed(TocsinException error) {
        return new ItemResult(null, error, false, false);
    }
}
