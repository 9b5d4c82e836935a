package dev.tocsin.client.error;

/** A limit was reached, and nothing was accepted. Try again after the seconds of {@code Retry-After}. */
public class OverloadedException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public OverloadedException(Problem problem) {
        super(problem);
    }
}
