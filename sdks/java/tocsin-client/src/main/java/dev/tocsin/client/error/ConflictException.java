package dev.tocsin.client.error;

/** The object's state does not allow this. */
public class ConflictException extends ApiException {
    private static final long serialVersionUID = 1L;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ConflictException(Problem problem) {
        super(problem);
    }
}
