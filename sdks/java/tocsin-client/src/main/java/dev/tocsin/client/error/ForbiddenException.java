package dev.tocsin.client.error;

/** The API key does not allow this. */
public class ForbiddenException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ForbiddenException(Problem problem) {
        super(problem);
    }
}
