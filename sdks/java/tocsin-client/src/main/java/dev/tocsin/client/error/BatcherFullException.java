package dev.tocsin.client.error;

/** A timer was added to a batcher that has as many waiting as it takes, and that refuses then. */
public class BatcherFullException extends TocsinException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param message what is wrong
     */
    public BatcherFullException(String message) {
        super(message);
    }
}
