package dev.tocsin.client.error;

/** A wait reached its timeout; what it waited for goes on. */
public class WaitTimeoutException extends TocsinException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param message what is wrong
     */
    public WaitTimeoutException(String message) {
        super(message);
    }
}
