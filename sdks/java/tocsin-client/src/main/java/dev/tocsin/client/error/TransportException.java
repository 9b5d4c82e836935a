package dev.tocsin.client.error;

import org.jspecify.annotations.Nullable;

/** No answer arrived. */
public class TransportException extends TocsinException {
    private static final long serialVersionUID = 1L;

    /** Whether the request may have been executed. */
    private final boolean maybeDone;

    /**
     * Made by the client.
     *
     * @param message what happened
     * @param maybeDone whether the server may have received and executed the request
     * @param cause the reason, or null
     */
    public TransportException(String message, boolean maybeDone, @Nullable Throwable cause) {
        super(message, cause);
        this.maybeDone = maybeDone;
    }

    /**
     * Whether the server may have received and executed the request; otherwise it was never sent completely.
     *
     * @return true if it may have been executed
     */
    public boolean maybeDone() {
        return maybeDone;
    }
}
