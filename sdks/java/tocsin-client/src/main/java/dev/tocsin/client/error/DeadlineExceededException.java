package dev.tocsin.client.error;

/** The call's time was over before an answer arrived. */
public class DeadlineExceededException extends TransportException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param message what happened
     * @param maybeDone whether the server may have received and executed the request
     * @param cause the last try's error
     */
    public DeadlineExceededException(String message, boolean maybeDone, Throwable cause) {
        super(message, maybeDone, cause);
    }
}
