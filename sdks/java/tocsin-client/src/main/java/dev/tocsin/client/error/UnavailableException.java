package dev.tocsin.client.error;

/** The server can't answer now. A write may have been executed. */
public class UnavailableException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public UnavailableException(Problem problem) {
        super(problem);
    }
}
