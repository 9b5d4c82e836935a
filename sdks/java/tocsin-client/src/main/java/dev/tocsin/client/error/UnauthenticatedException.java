package dev.tocsin.client.error;

/** No API key, or one that is unknown, revoked or expired. */
public class UnauthenticatedException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public UnauthenticatedException(Problem problem) {
        super(problem);
    }
}
