package dev.tocsin.client.error;

import org.jspecify.annotations.Nullable;

/** Base of everything that this library throws on its own account. */
public class TocsinException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * An error with an explanation.
     *
     * @param message what is wrong
     */
    public TocsinException(String message) {
        super(message);
    }

    /**
     * An error with its cause.
     *
     * @param message what is wrong
     * @param cause the reason
     */
    public TocsinException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
