package dev.tocsin.client.error;

import org.jspecify.annotations.Nullable;

/** An argument can't be sent: a value without a form in JSON, an instant out of range, a malformed URL or key. */
public class InvalidArgumentException extends TocsinException {
    private static final long serialVersionUID = 1L;

    /**
     * An error with an explanation.
     *
     * @param message which argument is wrong, how, and what to do
     */
    public InvalidArgumentException(String message) {
        super(message);
    }

    /**
     * An error with its cause.
     *
     * @param message which argument is wrong, how, and what to do
     * @param cause the reason
     */
    public InvalidArgumentException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
