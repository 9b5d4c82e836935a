package dev.tocsin.client.error;

/** A timer was added to a batcher that is closed. */
public class BatcherClosedException extends TocsinException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param message what is wrong
     */
    public BatcherClosedException(String message) {
        super(message);
    }
}
